// SPDX-License-Identifier: Apache-2.0
/** The stream of optiseq.py, and the conditions of its queries. */
final class Generator {
  static final int TYPES = 20;
  static final long STEP_MS = 1000;

  final int[] types;
  final int[] prices;
  private long state;

  Generator(int events, long seed) {
    state = (seed ^ 0x5DEECE66DL) & ((1L << 48) - 1);
    types = new int[events];
    prices = new int[events];
    for (int i = 0; i < events; i++) {
      types[i] = next() % TYPES;
      prices[i] = next() % 100 + 1;
    }
  }

  private int next() {
    state = (state * 0x5DEECE66DL + 0xB) & ((1L << 48) - 1);
    return (int) (state >>> 17);
  }

  /** Whether the event at a place may follow: its price, and those of the ones before it. */
  static boolean holds(String query, int place, double price, double[] before) {
    switch (query) {
      case "PAPER":
        return place == 0
            ? price > 50
            : place == 1
                ? before[0] > 1.38 * price
                : place == 3 ? before[2] < 0.6 * price : true;
      case "TEN":
        return place == 0
            || (place == 1
                ? price > before[0]
                : place == 2 ? price > before[1] : price < before[2] - 23);
      case "ONE":
        return place == 0
            || (place == 1
                ? price > before[0] + 30
                : place == 2 ? price > before[1] + 20 : price < before[2] - 10);
      case "CHAIN":
        return place == 0 || place > 2 || price > before[place - 1] + 10;
      default:
        throw new IllegalArgumentException(query);
    }
  }

}
