package org.example.shop;

public enum Action {
    VIEW, CART, REMOVE, PAY
}
