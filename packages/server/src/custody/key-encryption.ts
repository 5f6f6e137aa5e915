/** Wraps and unwraps data keys under one key-encryption key. Both may call a key service, so never use them inside a database transaction. */
export interface KeyEncryption {
  /** Identifies the key without revealing it. */
  readonly fingerprint: string
  wrap(dataKey: Uint8Array, associatedData: string): Promise<Uint8Array>
  /** Returns the data key, which the caller must wipe. Throws when it was wrapped under another key, with other associated data, or was changed. */
  unwrap(wrapped: Uint8Array, associatedData: string): Promise<Uint8Array>
}

/** The key-encryption keys in this process's configuration. */
export interface KeyRing {
  /** The first configured key, which a rotation makes current. */
  readonly first: KeyEncryption
  readonly fingerprints: readonly string[]
  has(fingerprint: string): boolean
  /** Throws when the key is not configured. */
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
          `the key-encryption key ${fingerprint} is not configured: add it to KEY_ENCRYPTION_ALSO and restart`,
        )
      return key
    },
  }
}
