package com.acme.fleet.cep;

public final class Thresholds {
    private Thresholds() {}
    public static final double MIN_DROP = 5.0;
    public static final int MIN_STOPS = 1 + 1;
    public static final long MINUTE = 60 * 1000L;
    public static final long WINDOW_MS = 10 * MINUTE;
    public static final String STOPPED = "stopped";
}
