// SPDX-License-Identifier: Apache-2.0
package pyflinkcep.check;

import java.time.Duration;

/** Flink's old class for durations, of which Flink 2 has Java's in its place. */
public final class Time {

  private Time() {}

  public static Duration of(long size, java.util.concurrent.TimeUnit unit) {
    return Duration.of(size, unit.toChronoUnit());
  }

  public static Duration milliseconds(long size) {
    return Duration.ofMillis(size);
  }

  public static Duration seconds(long size) {
    return Duration.ofSeconds(size);
  }

  public static Duration minutes(long size) {
    return Duration.ofMinutes(size);
  }

  public static Duration hours(long size) {
    return Duration.ofHours(size);
  }

  public static Duration days(long size) {
    return Duration.ofDays(size);
  }
}
