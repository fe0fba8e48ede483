package io.github.wollemi;

/**
 * A map's name and index.
 *
 * @param name the map's name
 * @param index the name of its index
 */
public record MapInfo(String name, String index) {}
