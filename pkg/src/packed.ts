/** What separates the parts of a packed string, in which values cross to the core and back; see `src/ledger.rs`. */

/** Between the items of a field. */
export const ITEM = "\u001d";
/** Between the fields of a record. */
export const FIELD = "\u001f";
/** Behind a record. */
export const RECORD = "\u001e";
