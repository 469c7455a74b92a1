import org.apache.flink.cep.*;
import org.apache.flink.cep.pattern.*;
import org.apache.flink.cep.pattern.conditions.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.*;
import org.apache.flink.streaming.api.functions.*;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.time.Time;
import java.util.*;

public class Network {
    public static class Packet {
        public String src, dst;
        public int port;
        public long bytes;
        public long ts;
        public byte flags;
        public float rtt;
        public Packet() {}
    }

    private static final int SYN = 0x02;
    private static final int FIN = 0x01;
    private static final long KB = 1 << 10;
    private static final long MB = KB * KB;
    private static final String[] INTERNAL = {"10.", "192.168.", "172.16."};
    private static final Set<Integer> PORTS = new TreeSet<>(Arrays.asList(22, 23, 3389));

    static boolean internal(String ip) {
        if (ip == null) return false;
        for (String prefix : INTERNAL) {
            if (ip.startsWith(prefix)) return true;
        }
        return false;
    }

    static int octet(String ip, int n) {
        String[] parts = ip.split("\\.");
        return parts.length > n ? Integer.parseInt(parts[n]) : -1;
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        int threshold = 3;
        if (args.length > 0) {
            threshold = Integer.parseInt(args[0]);
        }
        DataStream<Packet> packets = env.addSource(new PacketSource())
            .assignTimestampsAndWatermarks(new AssignerWithPeriodicWatermarks<Packet>() {
                private long max = 0;
                @Override public long extractTimestamp(Packet p, long before) {
                    max = Math.max(max, p.ts);
                    return p.ts;
                }
                @Override public Watermark getCurrentWatermark() { return new Watermark(max - 2000); }
            });

        Pattern<Packet, Packet> scan = Pattern.<Packet>begin("syn").where(new SimpleCondition<Packet>() {
            @Override public boolean filter(Packet p) { return (p.flags & SYN) != 0 && (p.flags & FIN) == 0 && internal(p.dst); }
        }).times(threshold).where(new IterativeCondition<Packet>() {
            @Override public boolean filter(Packet p, Context<Packet> ctx) throws Exception {
                for (Packet o : ctx.getEventsForPattern("syn")) {
                    if (o.port == p.port) return false;
                }
                return true;
            }
        }).within(Time.seconds(10));

        Pattern<Packet, ?> exfiltration = Pattern.<Packet>begin("login").where(new SimpleCondition<Packet>() {
            @Override public boolean filter(Packet p) { return PORTS.contains(p.port) && p.bytes < 10 * KB; }
        }).followedBy("upload").where(new IterativeCondition<Packet>() {
            @Override public boolean filter(Packet p, Context<Packet> ctx) throws Exception {
                long total = p.bytes;
                int n = 1;
                for (Packet u : ctx.getEventsForPattern("upload")) {
                    total += u.bytes;
                    n += 1;
                }
                return total / n > 1000 && total > MB / 1024;
            }
        }).timesOrMore(2).followedBy("out").where(new SimpleCondition<Packet>() {
            @Override public boolean filter(Packet p) {
                return !internal(p.dst) && octet(p.src, 3) % 2 == 0 && p.rtt * 2 > 1.5f;
            }
        }).within(Time.minutes(2));

        CEP.pattern(packets.keyBy(p -> p.src), scan).select(new PatternSelectFunction<Packet, Map<String, Object>>() {
            @Override public Map<String, Object> select(Map<String, List<Packet>> m) {
                Map<String, Object> result = new LinkedHashMap<>();
                result.put("src", m.get("syn").get(0).src);
                result.put("count", m.get("syn").size());
                return result;
            }
        }).print();
        CEP.pattern(packets.keyBy(p -> p.src), exfiltration).select(new PatternSelectFunction<Packet, Long>() {
            @Override public Long select(Map<String, List<Packet>> m) {
                long sum = 0L;
                for (int i = 0; i < m.get("upload").size(); i++) sum += m.get("upload").get(i).bytes;
                return sum;
            }
        }).print();
        env.execute("network");
    }
}
