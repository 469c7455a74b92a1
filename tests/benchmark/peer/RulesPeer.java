// SPDX-License-Identifier: Apache-2.0
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * EVENTS KEYS TYPES SEED PARALLELISM RULES SECONDS: the events of events.py, and the selective
 * rules of rule_sets.py, each with an operator of its own in one job. Prints a line of JSON.
 */
public class RulesPeer {
  /** An event: its key, type and volume, and its time in milliseconds. */
  public static class Event {
    public int key;
    public int type;
    public long volume;
    public long ts;

    public Event() {}

    Event(long number, int keys, int types, long seed) {
      long hash = mixed(number * 0x9E3779B97F4A7C15L + seed);
      key = (int) Long.remainderUnsigned(hash, keys);
      hash = mixed(hash);
      type = (int) Long.remainderUnsigned(hash, types);
      hash = mixed(mixed(hash)); // of the price, and of the volume
      volume = Long.remainderUnsigned(hash, 2000);
      ts = number;
    }

    private static long mixed(long z) {
      z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
      z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
      return z ^ (z >>> 31);
    }
  }

  /** Gives the sum of the times of a match's events. */
  static class Times extends PatternProcessFunction<Event, Long> {
    @Override
    public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
      long times = 0;
      for (List<Event> stage : match.values()) {
        for (Event event : stage) {
          times += event.ts;
        }
      }
      out.collect(times);
    }
  }

  /** Counts the matches and adds up their times; a CEP function has no accumulators. */
  static class Sum extends RichMapFunction<Long, Long> {
    private final LongCounter matches = new LongCounter();
    private final LongCounter checksum = new LongCounter();

    @Override
    public void open(OpenContext context) {
      getRuntimeContext().addAccumulator("matches", matches);
      getRuntimeContext().addAccumulator("checksum", checksum);
    }

    @Override
    public Long map(Long times) {
      matches.add(1);
      checksum.add(times);
      return times;
    }
  }

  static Pattern<Event, ?> rule(int number, int types, int seconds) {
    int type = number % types;
    long low = number * 37L % (2000 - 20);
    return Pattern.<Event>begin("a")
        .where(SimpleCondition.of(event -> event.type == type))
        .followedBy("b")
        .where(SimpleCondition.of(event -> event.volume >= low && event.volume < low + 20))
        .within(Duration.ofSeconds(seconds));
  }

  public static void main(String[] arguments) throws Exception {
    long count = Long.parseLong(arguments[0]);
    int keys = Integer.parseInt(arguments[1]);
    int types = Integer.parseInt(arguments[2]);
    long seed = Long.parseLong(arguments[3]);
    int parallelism = Integer.parseInt(arguments[4]);
    int seconds = Integer.parseInt(arguments[6]);
    var environment =
        StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
    DataStream<Event> events =
        environment
            .fromSequence(0, count - 1)
            .setParallelism(1)
            .map(number -> new Event(number, keys, types, seed))
            .returns(Event.class)
            .setParallelism(1)
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Event>forMonotonousTimestamps()
                    .withTimestampAssigner((event, ts) -> event.ts))
            .setParallelism(1);
    KeyedStream<Event, Integer> keyed = events.keyBy(event -> event.key);
    for (int number = 0; number < Integer.parseInt(arguments[5]); number++) {
      DataStream<Long> found =
          CEP.pattern(keyed, rule(number, types, seconds)).process(new Times()).map(new Sum());
      found.sinkTo(new DiscardingSink<>());
    }
    var result = environment.execute();
    System.out.printf(
        "{\"seconds\": %.3f, \"matches\": %s, \"checksum\": %s}%n",
        result.getNetRuntime() / 1000.0,
        result.getAccumulatorResult("matches"),
        result.getAccumulatorResult("checksum"));
  }
}
