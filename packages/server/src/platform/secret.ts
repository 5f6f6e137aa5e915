/**
 * Seals small secrets for storage with authenticated encryption. The associated data binds a ciphertext to its row, so one that is copied
 * to another organisation does not open.
 */
export interface Sealer {
  seal(plaintext: Uint8Array, associatedData: string): Uint8Array
  /** Throws if the ciphertext or the associated data differs from what was sealed. */
  open(sealed: Uint8Array, associatedData: string): Uint8Array
  /**
   * As `seal` and `open`, under a key derived from the associated data: for values without a limit of number. With random nonces, one key may
   * encrypt 2^32 values (NIST SP 800-38D, section 8.3).
   */
  readonly ofMany: Pick<Sealer, 'seal' | 'open'>
}
