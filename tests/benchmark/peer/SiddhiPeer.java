// SPDX-License-Identifier: Apache-2.0
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.output.StreamCallback;

/** QUERY LENGTH SECONDS EVENTS SEED: a query of optiseq.py on Siddhi. Prints a line of JSON. */
public class SiddhiPeer {
  /** The condition at a place; {@code within} beside several {@code every} is not exact alone. */
  static String filter(String query, int place, int length, long windowMs) {
    String text = "type == " + place;
    switch (query + place) {
      case "PAPER0": text += " and price > 50.0"; break;
      case "PAPER1": text += " and s0.price > 1.38 * price"; break;
      case "PAPER3": text += " and s2.price < 0.6 * price"; break;
      case "TEN1": text += " and price > s0.price"; break;
      case "TEN2": text += " and price > s1.price"; break;
      case "TEN3": text += " and price < s2.price - 23.0"; break;
      case "ONE1": text += " and price > s0.price + 30.0"; break;
      case "ONE2": text += " and price > s1.price + 20.0"; break;
      case "ONE3": text += " and price < s2.price - 10.0"; break;
      case "CHAIN1": text += " and price > s0.price + 10.0"; break;
      case "CHAIN2": text += " and price > s1.price + 10.0"; break;
      default: break;
    }
    return place + 1 == length ? text + " and ts - s0.ts <= " + windowMs + "L" : text;
  }

  static String app(String query, int length, int seconds) {
    StringBuilder text = new StringBuilder("@app:playback define stream S (type int, price double, ts long);\nfrom ");
    for (int place = 0; place < length; place++) {
      text.append(place == 0 ? "" : " -> ");
      text.append("every s").append(place).append("=S[");
      text.append(filter(query, place, length, seconds * 1000L)).append("]");
    }
    text.append(" within ").append(seconds).append(" sec\nselect s0.ts as first insert into Found;");
    return text.toString();
  }

  static String run(String query, int length, int seconds, int events, Generator stream) throws Exception {
    long[] matches = {0};
    var manager = new SiddhiManager();
    var runtime = manager.createSiddhiAppRuntime(app(query, length, seconds));
    runtime.addCallback(
        "Found",
        new StreamCallback() {
          @Override
          public void receive(Event[] found) {
            matches[0] += found.length;
          }
        });
    var input = runtime.getInputHandler("S");
    runtime.start();
    long begin = System.nanoTime();
    for (int i = 0; i < events; i++) {
      if (stream.types[i] < length) {
        long ts = i * Generator.STEP_MS;
        input.send(ts, new Object[] {stream.types[i], (double) stream.prices[i], ts});
      }
    }
    double took = (System.nanoTime() - begin) / 1e9;
    runtime.shutdown();
    manager.shutdown();
    return String.format("{\"seconds\": %.3f, \"matches\": %d}", took, matches[0]);
  }

  public static void main(String[] arguments) throws Exception {
    int events = Integer.parseInt(arguments[3]);
    Generator stream = new Generator(events, Long.parseLong(arguments[4]));
    int length = Integer.parseInt(arguments[1]);
    int seconds = Integer.parseInt(arguments[2]);
    run(arguments[0], length, seconds, Math.min(events, 50_000), stream); // a warm virtual machine
    System.out.println(run(arguments[0], length, seconds, events, stream));
  }
}
