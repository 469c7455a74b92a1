package com.acme.fleet.model;

import lombok.AllArgsConstructor;
import lombok.Builder;
import lombok.Data;
import lombok.NoArgsConstructor;

/** One message of a truck. */
@Data
@Builder
@NoArgsConstructor
@AllArgsConstructor
public class Telemetry {
    private String truckId;
    private long timestamp;
    private Kind kind;
    private Double fuel;
    private double speed;
    private Position position;
    private java.util.List<String> codes;

    public enum Kind { MOVING, STOPPED, REFUEL, DOOR_OPEN, DOOR_CLOSED;
        public boolean isDoor() { return this == DOOR_OPEN || this == DOOR_CLOSED; }
    }

    public boolean hasCode(String code) {
        return codes != null && codes.contains(code);
    }
}
