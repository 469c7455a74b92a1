package com.acme.fleet.cep;

import com.acme.fleet.model.Telemetry;

public class FuelDropCondition extends BaseCondition {
    public FuelDropCondition(double limit) {
        super(limit);
    }

    @Override
    protected boolean accept(Telemetry value, Context<Telemetry> ctx) throws Exception {
        double last = Double.NaN;
        for (Telemetry t : ctx.getEventsForPattern(Thresholds.STOPPED)) {
            if (t.getFuel() != null) {
                last = t.getFuel();
            }
        }
        return !Double.isNaN(last) && last - value.getFuel() > limit;
    }
}
