import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.types.Row;
import java.time.Duration;

/** Rows of a table. */
public class RowLogs {
    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        StreamTableEnvironment tEnv = StreamTableEnvironment.create(env);
        tEnv.executeSql("CREATE TABLE logs (host STRING, level STRING, took INT, ts TIMESTAMP(3), "
            + "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'logs', "
            + "'properties.bootstrap.servers' = 'localhost:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json')");
        Table table = tEnv.sqlQuery("SELECT host, level, took, ts FROM logs WHERE level <> 'DEBUG'");
        DataStream<Row> rows = tEnv.toDataStream(table);
        Pattern<Row, ?> slow = Pattern.<Row>begin("error")
            .where(SimpleCondition.of(r -> "ERROR".equals(r.getField("level"))))
            .followedBy("slow")
            .where(SimpleCondition.of(r -> (Integer) r.getField("took") > 1000))
            .where(new IterativeCondition<Row>() {
                @Override
                public boolean filter(Row r, Context<Row> ctx) throws Exception {
                    for (Row e : ctx.getEventsForPattern("error")) {
                        if (!e.getFieldAs("host").equals(r.getFieldAs("host"))) {
                            return false;
                        }
                    }
                    return true;
                }
            })
            .within(Duration.ofSeconds(30));
        CEP.pattern(rows.keyBy(r -> r.getField("host").toString()), slow)
            .select(m -> Row.of(m.get("error").get(0).getField("host"), m.get("slow").get(0).getField("took")), Types.ROW(Types.STRING, Types.INT))
            .print();
        env.execute();
    }
}
