package odd;

import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.cep.functions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;
import org.apache.flink.util.Collector;

/** Odd things: labels, try and finally, bit tricks, ternaries in chains, recursion, shadowing names. */
public class Odd {
    public static class In { public int id; public Integer val; public String list; public double lambda; public long match; public String type; }

    static int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
    static boolean isPrime(int n) {
        if (n < 2) return false;
        for (int i = 2; i * i <= n; i++) {
            if (n % i == 0) return false;
        }
        return true;
    }
    static String classify(int n) {
        String result;
        if (n < 0) result = "neg";
        else if (n == 0) result = "zero";
        else result = n > 100 ? "big" : "pos";
        return result;
    }

    static Pattern<In, ?> weird(boolean fast, int mode) {
        Pattern<In, In> start = Pattern.begin("start");
        start = start.where(SimpleCondition.of(in -> isPrime(in.id)));
        Pattern<In, ?> p;
        if (mode == 1) {
            // one of several ways to go on
            p = start.next("end").where(SimpleCondition.of(in -> classify(in.id).equals("big")));

        } else {
            p = (fast ? start.next("end") : start.followedBy("end")).where(SimpleCondition.of(in -> gcd(in.id, 12) > 1));
        }
        return p.within(Duration.ofSeconds(fast ? 5 : 50));
    }

    static Pattern<In, ?> names() {
        return Pattern.<In>begin("class").where(SimpleCondition.of(in -> in.list != null && in.lambda > 0 && in.match != 0L && "x".equals(in.type)))
            .followedBy("def from").where(new IterativeCondition<In>() {
                @Override
                public boolean filter(In event, Context<In> match) throws Exception {
                    int list = 0, sum = 1;
                    outer:
                    for (In ctx : match.getEventsForPattern("class")) {
                        if (ctx.val == null) continue;
                        list = list ^ ctx.val;
                        sum *= 31;
                        sum += ctx.id;
                    }
                    try {
                        return Integer.parseInt(event.list) > list + (sum >>> 3);
                    } catch (NumberFormatException e) {
                        return false;
                    }
                }
            });
    }

    static Pattern<In, ?> nested() {
        return Pattern.<In>begin("a").where(new SimpleCondition<In>() {
            private int count(String s, char c) {
                int n = 0;
                for (char x : s.toCharArray()) {
                    if (x == c) n++;
                }
                return n;
            }
            @Override
            public boolean filter(In in) {
                return in.list != null && count(in.list, 'x') >= 1 && (in.val != null ? in.val : 7) % 3 != 0;
            }
        }).next("b").where(new IterativeCondition<In>() {
            @Override
            public boolean filter(In in, Context<In> ctx) throws Exception {
                double[] values = new double[10];
                int n = 0;
                for (In a : ctx.getEventsForPattern("a")) {
                    if (n < values.length) {
                        values[n++] = a.lambda;
                    }
                }
                Arrays.sort(values);
                return in.lambda >= values[9] && n > 0;
            }
        }).optional().followedBy("c").where(SimpleCondition.of(in -> Long.compare(in.match, 5L) > 0 && Integer.valueOf(3).equals(in.val) == false));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<In> in = env.addSource(new InSource());
        CEP.pattern(in, weird(true, 2)).select(m -> m.get("end").get(0).id).print();
        CEP.pattern(in, names()).inProcessingTime().process(new PatternProcessFunction<In, String>() {
            @Override
            public void processMatch(Map<String, List<In>> m, Context c, Collector<String> o) throws Exception {
                In first = m.get("class").get(0);
                switch (first.type) {
                    case "x" -> o.collect("X" + c.timestamp());
                    case "y", "z" -> { o.collect("YZ"); }
                    default -> throw new IllegalStateException("unexpected " + first.type);
                }
            }
        }).print();
        CEP.pattern(in, nested()).select(m -> m.containsKey("b") ? "with" : "without").print();
        env.execute("odd");
    }
}
