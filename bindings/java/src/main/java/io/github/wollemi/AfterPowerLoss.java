package io.github.wollemi;

/** What to do with a pool of level {@link Level#PROCESS} that was open when the machine crashed or lost power. */
public enum AfterPowerLoss {
    /** Refuse to open it. */
    REFUSE,
    /** Open it if it is opened read-only, and leave it suspect; refuse to open it to write. */
    LOOK,
    /** Accept the present content. Check the pool first, by opening it read-only. */
    ACCEPT
}
