/** Wraps and unwraps data keys under one key-encryption key. Both may ask a key service: never inside a database transaction. */
export interface KeyEncryption {
  /** Names the key without telling it. */
  readonly fingerprint: string
  wrap(dataKey: Uint8Array, associatedData: string): Promise<Uint8Array>
  /** The data key, which the caller wipes. Throws when it was wrapped under another key, for another place, or was changed. */
  unwrap(wrapped: Uint8Array, associatedData: string): Promise<Uint8Array>
}

/** The key-encryption keys that this process may use: all that the configuration names. */
export interface KeyRing {
  /** The key that the configuration names first, which a rotation leads to. */
  readonly first: KeyEncryption
  readonly fingerprints: readonly string[]
  has(fingerprint: string): boolean
  /** Throws when the process was not given that key. */
  key(fingerprint: string): KeyEncryption
}

export function createKeyRing(first: KeyEncryption, others: readonly KeyEncryption[] = []): KeyRing {
  const keys = new Map([first, ...others].map((key) => [key.fingerprint, key]))
  return {
    first,
    fingerprints: [...keys.keys()],
    has: (fingerprint) => keys.has(fingerprint),
    key(fingerprint) {
      const key = keys.get(fingerprint)
      if (key === undefined)
        throw new Error(
          `this process was not given the key-encryption key ${fingerprint}: name it in KEY_ENCRYPTION_ALSO and start again`,
        )
      return key
    },
  }
}
