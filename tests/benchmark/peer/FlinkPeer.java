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
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** QUERY LENGTH SECONDS EVENTS SEED: a query of optiseq.py on Flink CEP. Prints a line of JSON. */
public class FlinkPeer {
  static Generator stream;

  /** An event: its type, its price and its time in milliseconds. */
  public static class Event {
    public int type;
    public int price;
    public long ts;

    public Event() {}

    Event(int type, int price, long ts) {
      this.type = type;
      this.price = price;
      this.ts = ts;
    }
  }

  static class Asked extends IterativeCondition<Event> {
    private final String query;
    private final int place;

    Asked(String query, int place) {
      this.query = query;
      this.place = place;
    }

    @Override
    public boolean filter(Event event, Context<Event> context) throws Exception {
      if (event.type != place) {
        return false;
      }
      double[] before = new double[place];
      int least = query.equals("PAPER") && place == 2 ? place : Math.max(0, place - 1);
      for (int i = least; i < place; i++) { // only the one before is ever asked
        for (Event earlier : context.getEventsForPattern("s" + i)) {
          before[i] = earlier.price;
        }
      }
      return Generator.holds(query, place, event.price, before);
    }
  }

  static class One extends PatternProcessFunction<Event, Long> {
    @Override
    public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
      out.collect(1L);
    }
  }

  static class Sum extends RichMapFunction<Long, Long> {
    private final LongCounter matches = new LongCounter();

    @Override
    public void open(OpenContext context) {
      getRuntimeContext().addAccumulator("matches", matches);
    }

    @Override
    public Long map(Long one) {
      matches.add(one);
      return one;
    }
  }

  static String run(String query, int length, int seconds, long events) throws Exception {
    var environment = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
    environment.getConfig().enableObjectReuse();
    DataStream<Event> input =
        environment
            .fromSequence(0, events - 1)
            .map(i -> new Event(stream.types[(int) (long) i], stream.prices[(int) (long) i], i * Generator.STEP_MS))
            .returns(Event.class)
            .filter(event -> event.type < length)
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Event>forMonotonousTimestamps()
                    .withTimestampAssigner((event, ts) -> event.ts));
    Pattern<Event, Event> pattern = Pattern.<Event>begin("s0").where(new Asked(query, 0));
    for (int place = 1; place < length; place++) {
      pattern = pattern.followedByAny("s" + place).where(new Asked(query, place));
    }
    CEP.pattern(input.keyBy(event -> 0), pattern.within(Duration.ofMillis(seconds * 1000L + 1)))
        .process(new One())
        .map(new Sum())
        .sinkTo(new DiscardingSink<>());
    var result = environment.execute();
    return String.format(
        "{\"seconds\": %.3f, \"matches\": %s}",
        result.getNetRuntime() / 1000.0, (Object) result.getAccumulatorResult("matches"));
  }

  public static void main(String[] arguments) throws Exception {
    int events = Integer.parseInt(arguments[3]);
    stream = new Generator(events, Long.parseLong(arguments[4]));
    int length = Integer.parseInt(arguments[1]);
    int seconds = Integer.parseInt(arguments[2]);
    run(arguments[0], length, seconds, Math.min(events, 50_000)); // a warm virtual machine
    System.out.println(run(arguments[0], length, seconds, events));
  }
}
