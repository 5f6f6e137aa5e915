/**
 * Seals small secrets for storage with authenticated encryption. The associated data binds a ciphertext to its row, so one that is copied
 * to another organisation does not open.
 */
export interface Sealer {
  seal(plaintext: Uint8Array, associatedData: string): Uint8Array
  /** Throws if the ciphertext or the associated data differs from what was sealed. */
  open(sealed: Uint8Array, associatedData: string): Uint8Array
}
