/**
 * Seals small secrets for storage with authenticated encryption. The associated data binds a ciphertext to its row, so one that is copied
 * to another organisation does not open.
 */
export interface Sealer {
  seal(plaintext: Uint8Array, associatedData: string): Uint8Array
  /** Throws if the ciphertext or the associated data differs from what was sealed. */
  open(sealed: Uint8Array, associatedData: string): Uint8Array
  /**
   * `seal` and `open` with a key derived from the associated data, for an unlimited number of values. With random nonces, one key may
   * encrypt 2^32 values (NIST SP 800-38D, section 8.3).
   */
  readonly ofMany: Pick<Sealer, 'seal' | 'open'>
}
