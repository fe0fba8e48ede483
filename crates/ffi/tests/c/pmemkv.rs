//! Users of pmemkv find each function of its C interface on the page, and each status.

use crate::compiler::CRATE;

/// `libpmemkv.h` and `libpmemkv_json_config.h` of pmemkv 1.5, without the prefixes `pmemkv_` and `PMEMKV_`.
const NAMES: &str = "
    comparator_new comparator_delete
    config_new config_delete config_put_data config_put_object config_put_object_cb config_put_uint64 config_put_int64
    config_put_string config_get_data config_get_object config_get_uint64 config_get_int64 config_get_string
    config_put_size config_put_path config_put_force_create config_put_create_or_error_if_exists
    config_put_create_if_missing config_put_comparator config_put_oid config_from_json config_from_json_errormsg
    open close
    count_all count_above count_equal_above count_equal_below count_below count_between
    get_all get_above get_equal_above get_equal_below get_below get_between
    exists get get_copy put remove defrag errormsg
    tx_begin tx_put tx_remove tx_commit tx_abort tx_end
    iterator_new write_iterator_new iterator_delete write_iterator_delete
    iterator_seek iterator_seek_lower iterator_seek_lower_eq iterator_seek_higher iterator_seek_higher_eq
    iterator_seek_to_first iterator_seek_to_last iterator_is_next iterator_next iterator_prev iterator_key
    iterator_read_range write_iterator_write_range write_iterator_commit write_iterator_abort
    STATUS_OK STATUS_UNKNOWN_ERROR STATUS_NOT_FOUND STATUS_NOT_SUPPORTED STATUS_INVALID_ARGUMENT
    STATUS_CONFIG_PARSING_ERROR STATUS_CONFIG_TYPE_ERROR STATUS_STOPPED_BY_CB STATUS_OUT_OF_MEMORY
    STATUS_WRONG_ENGINE_NAME STATUS_TRANSACTION_SCOPE_ERROR STATUS_DEFRAG_ERROR STATUS_COMPARATOR_MISMATCH";

#[test]
fn the_page_has_every_name_of_it() {
    let page = std::fs::read_to_string(format!("{CRATE}/README.md")).expect("the page");
    let missing: Vec<_> = NAMES
        .split_whitespace()
        .map(|name| match name.starts_with("STATUS_") {
            true => format!("PMEMKV_{name}"),
            false => format!("pmemkv_{name}"),
        })
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
