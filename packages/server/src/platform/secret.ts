/**
 * Seals small secrets for storage with authenticated encryption. The associated data binds a ciphertext to its place,
 * so a row copied to another organisation does not open.
 */
export interface Sealer {
  seal(plaintext: Uint8Array, associatedData: string): Uint8Array
  /** Throws when the ciphertext or the associated data is not what was sealed. */
  open(sealed: Uint8Array, associatedData: string): Uint8Array
}
