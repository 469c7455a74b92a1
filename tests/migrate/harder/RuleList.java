import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.GroupPattern;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.Quantifier;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.cep.pattern.conditions.SubtypeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Patterns made of a list of steps. */
public class RuleList {
    public static class Click {
        public String user;
        public String page;
        public int seconds;
        public long time;
        public Click() {}
        public String getPage() { return page; }
    }

    static class Step {
        final String name;
        final String page;
        final int min;
        Step(String name, String page, int min) {
            this.name = name;
            this.page = page;
            this.min = min;
        }
    }

    static class OnPage extends SimpleCondition<Click> {
        private final String page;
        private final int min;
        OnPage(String page, int min) { this.page = page; this.min = min; }
        @Override
        public boolean filter(Click c) { return page.equals(c.page) && c.seconds >= min; }
    }

    static Pattern<Click, ?> funnel() {
        List<Step> steps = new ArrayList<>();
        steps.add(new Step("home", "/", 0));
        steps.add(new Step("search", "/search", 2));
        steps.add(new Step("buy", "/buy", 1));
        Pattern<Click, ?> pattern = null;
        for (Step step : steps) {
            IterativeCondition<Click> condition = new OnPage(step.page, step.min);
            if (pattern == null) {
                pattern = Pattern.<Click>begin(step.name).where(condition);
            } else {
                pattern = pattern.followedBy(step.name).where(condition);
            }
        }
        return pattern.within(Duration.ofMinutes(10));
    }

    static Pattern<Click, ?> composed() {
        IterativeCondition<Click> search = SimpleCondition.of(c -> c.page.startsWith("/search"));
        IterativeCondition<Click> slow = SimpleCondition.of(c -> c.seconds > 10);
        return Pattern.<Click>begin("a").where(search).where(slow)
            .next("b").where(new OnPage("/", 1)).or(SimpleCondition.of(c -> c.seconds <= 10))
            .followedByAny("c").where(search).or(slow)
            .within(Duration.ofMinutes(1));
    }

    static Pattern<Click, ?> groups() {
        Pattern<Click, ?> inner = Pattern.<Click>begin("view").where(SimpleCondition.of(c -> c.page.contains("item")))
            .next("rate").where(SimpleCondition.of(c -> c.page.endsWith("/rate"))).optional();
        GroupPattern<Click, ?> group = Pattern.begin(inner, AfterMatchSkipStrategy.skipToFirst("view"));
        return group.times(2).consecutive()
            .followedBy("buy").where(SimpleCondition.of(c -> c.page.equals("/buy")))
            .oneOrMore().until(SimpleCondition.of(c -> c.page.isEmpty()))
            .within(Duration.ofSeconds(45));
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Click> clicks = env.fromCollection(new ArrayList<Click>(), Click.class == null ? null : org.apache.flink.api.common.typeinfo.TypeInformation.of(Click.class))
            .assignTimestampsAndWatermarks(WatermarkStrategy.<Click>forBoundedOutOfOrderness(Duration.ZERO)
                .withTimestampAssigner((c, t) -> c.time));
        for (Pattern<Click, ?> p : Arrays.asList(funnel(), composed(), groups())) {
            CEP.pattern(clicks.keyBy(c -> c.user), p).select(m -> m.toString()).print();
        }
        env.execute();
    }
}
