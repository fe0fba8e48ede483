//! WORT: the write optimal radix tree (WORT §3.2-3.4).
