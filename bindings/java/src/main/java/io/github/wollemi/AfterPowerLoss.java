package io.github.wollemi;

/** What to do with a pool of level {@link Level#PROCESS} that was open when the machine crashed or lost power. */
public enum AfterPowerLoss {
    /** Refuse to open it. */
    REFUSE,
    /** Open it to be read, if that is what is asked for, and leave it suspect; refuse to open it to be written. */
    LOOK,
    /** Take what there is for the pool's content. Check the pool before, by an opening to read. */
    ACCEPT
}
