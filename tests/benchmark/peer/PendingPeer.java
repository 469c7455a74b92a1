// SPDX-License-Identifier: Apache-2.0
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
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * PARTIALS OTHERS: on one key so many events that each begin a partial match, so many that no stage
 * takes, and one that ends all. Prints a line of JSON.
 */
public class PendingPeer {
  static final int START = 0;
  static final int END = 1;
  static final int OTHER = 2;

  /** An event: its type and its time in milliseconds. */
  public static class Event {
    public int type;
    public long ts;

    public Event() {}

    Event(int type, long ts) {
      this.type = type;
      this.ts = ts;
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

  public static void main(String[] arguments) throws Exception {
    long partials = Long.parseLong(arguments[0]);
    long last = partials + Long.parseLong(arguments[1]);
    var environment = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
    DataStream<Event> events =
        environment
            .fromSequence(0, last)
            .map(i -> new Event(i < partials ? START : i < last ? OTHER : END, i))
            .returns(Event.class)
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Event>forMonotonousTimestamps()
                    .withTimestampAssigner((event, ts) -> event.ts));
    Pattern<Event, ?> pattern =
        Pattern.<Event>begin("a")
            .where(SimpleCondition.of(event -> event.type == START))
            .followedBy("b")
            .where(SimpleCondition.of(event -> event.type == END));
    CEP.pattern(events.keyBy(event -> 0), pattern)
        .process(new Times())
        .map(new Sum())
        .sinkTo(new DiscardingSink<>());
    var result = environment.execute();
    System.out.printf(
        "{\"seconds\": %.3f, \"matches\": %s, \"checksum\": %s}%n",
        result.getNetRuntime() / 1000.0,
        result.getAccumulatorResult("matches"),
        result.getAccumulatorResult("checksum"));
  }
}
