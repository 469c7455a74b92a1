package org.example.shop;

/** Numbers that the shop's jobs share. */
public final class Limits {
    public static final int MANY = 5;
    public static final double EXPENSIVE = 250.0;
    public static final String VIEWED = "viewed often";
    public static final String LEFT = "left in cart";
    static final long HALF_HOUR = 30 * 60 * 1000L;

    private Limits() {}
}
