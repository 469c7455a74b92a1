package org.example.shop;

import lombok.Data;

/** What a customer does in the shop. */
@Data
public class ShopEvent {
    private String session;
    private Action action;
    private String product;
    private Integer quantity;
    private double price;
    private long at;
}
