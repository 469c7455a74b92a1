import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.time.Time;
import org.apache.flink.streaming.api.functions.sink.PrintSinkFunction;
import java.util.*;

public class StringsOnly {
    public static void main(String[] args) throws Exception {
        final StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1);
        DataStream<String> input = env.fromElements("a1", "b2", "c", "a2", "d", "b3");
        Pattern<String, ?> pattern = Pattern.<String>begin("start").where(new IterativeCondition<String>() {
            @Override
            public boolean filter(String s, Context<String> ctx) throws Exception {
                return s.startsWith("a");
            }
        }).followedByAny("middle").where(new SimpleCondition<String>() {
            @Override
            public boolean filter(String value) throws Exception {
                return value.length() > 1 && Character.isDigit(value.charAt(1)) && value.charAt(0) != 'a';
            }
        }).oneOrMore().optional().greedy().followedBy("end").where(new IterativeCondition<String>() {
            @Override
            public boolean filter(String value, Context<String> ctx) throws Exception {
                if (!value.contains("b") && !value.equals("d")) {
                    return false;
                }
                List<String> seen = new ArrayList<>();
                ctx.getEventsForPattern("start").forEach(seen::add);
                for (String m : ctx.getEventsForPattern("middle")) {
                    seen.add(m);
                }
                int total = 0;
                for (int i = 0; i < seen.size(); i++) {
                    total += seen.get(i).length();
                }
                return total < 10 && seen.indexOf(value) < 0;
            }
        }).within(Time.milliseconds(50));
        CEP.pattern(input, pattern).inProcessingTime().select(new PatternSelectFunction<String, String>() {
            @Override
            public String select(Map<String, List<String>> m) throws Exception {
                StringBuilder b = new StringBuilder();
                for (String k : new String[]{"start", "middle", "end"}) {
                    if (m.get(k) == null) continue;
                    b.append(k).append("=").append(String.join("+", m.get(k))).append(" ");
                }
                return b.toString().trim();
            }
        }).addSink(new PrintSinkFunction<>()).setParallelism(1);
        env.execute("strings");
    }
}
