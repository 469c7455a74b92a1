package org.example.shop;

import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** Something expensive, or much of it, went into the cart. */
public class InCart extends SimpleCondition<ShopEvent> {
    @Override
    public boolean filter(ShopEvent event) throws Exception {
        if (event.getAction() != Action.CART) {
            return false;
        }
        double total = event.getPrice() * event.getQuantity();
        return total >= Limits.EXPENSIVE || event.getQuantity() > Limits.MANY;
    }
}
