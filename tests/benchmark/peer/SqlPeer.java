// SPDX-License-Identifier: Apache-2.0
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

/**
 * QUERY PARALLELISM random EVENTS KEYS TYPES SEED, or QUERY PARALLELISM loop OTHERS: runs a query of
 * the column "times" over the view "events" in Flink SQL. Prints a line of JSON.
 */
public class SqlPeer {
  static final long STRIDE = 0x9E3779B97F4A7C15L;

  static long mixed(long z) {
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  static Row event(long key, long type, double price, long volume, long t) {
    LocalDateTime ts = LocalDateTime.ofInstant(Instant.ofEpochMilli(t), ZoneOffset.UTC);
    return Row.of((int) key, (int) type, price, volume, ts, t);
  }

  static Row random(long i, long keys, long types, long seed) {
    long key = mixed(i * STRIDE + seed);
    long type = mixed(key);
    long cents = mixed(type);
    long volume = mixed(cents);
    return event(
        Long.remainderUnsigned(key, keys),
        Long.remainderUnsigned(type, types),
        Long.remainderUnsigned(cents, 10_000) / 100.0,
        Long.remainderUnsigned(volume, 2_000),
        i);
  }

  /** Counts the matches and adds up their times. */
  static class Sum extends RichMapFunction<Row, Row> {
    private final LongCounter matches = new LongCounter();
    private final LongCounter checksum = new LongCounter();

    @Override
    public void open(OpenContext context) {
      getRuntimeContext().addAccumulator("matches", matches);
      getRuntimeContext().addAccumulator("checksum", checksum);
    }

    @Override
    public Row map(Row row) {
      matches.add(1);
      checksum.add(((Number) row.getField(0)).longValue());
      return row;
    }
  }

  public static void main(String[] arguments) throws Exception {
    int parallelism = Integer.parseInt(arguments[1]);
    boolean isLoop = arguments[2].equals("loop");
    long[] numbers = new long[arguments.length - 3];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = Long.parseLong(arguments[i + 3]);
    }
    long last = isLoop ? numbers[0] + 1 : numbers[0] - 1;
    Configuration configuration = new Configuration();
    configuration.setString("table.local-time-zone", "UTC");
    var environment =
        StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
    environment.getConfig().enableObjectReuse();
    TypeInformation<?>[] types = {
      Types.INT, Types.INT, Types.DOUBLE, Types.LONG, Types.LOCAL_DATE_TIME, Types.LONG
    };
    String[] names = {"key", "type", "price", "volume", "ts", "t"};
    var events =
        environment
            .fromSequence(0, last)
            .map(
                i ->
                    isLoop
                        ? event(0, i == 0 ? 0 : i < last ? 2 : 1, 0, 0, i)
                        : random(i, numbers[1], numbers[2], numbers[3]))
            .returns(Types.ROW_NAMED(names, types))
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.<Row>forMonotonousTimestamps()
                    .withTimestampAssigner((row, before) -> (long) row.getField(5)));
    var tables = StreamTableEnvironment.create(environment);
    Schema schema =
        Schema.newBuilder()
            .column("key", "INT")
            .column("type", "INT")
            .column("price", "DOUBLE")
            .column("volume", "BIGINT")
            .column("ts", "TIMESTAMP(3)")
            .column("t", "BIGINT")
            .watermark("ts", "SOURCE_WATERMARK()")
            .build();
    tables.createTemporaryView("events", events, schema);
    tables
        .toDataStream(tables.sqlQuery(arguments[0]))
        .map(new Sum())
        .returns(Types.ROW_NAMED(new String[] {"times"}, Types.LONG))
        .sinkTo(new DiscardingSink<>());
    var result = environment.execute();
    System.out.printf(
        "{\"seconds\": %.3f, \"matches\": %s, \"checksum\": %s}%n",
        result.getNetRuntime() / 1000.0,
        result.getAccumulatorResult("matches"),
        result.getAccumulatorResult("checksum"));
  }
}
