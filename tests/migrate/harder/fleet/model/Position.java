package com.acme.fleet.model;

public record Position(double lat, double lon) {
    public double distanceTo(Position other) {
        double dLat = lat - other.lat;
        double dLon = lon - other.lon;
        return Math.sqrt(dLat * dLat + dLon * dLon);
    }
}
