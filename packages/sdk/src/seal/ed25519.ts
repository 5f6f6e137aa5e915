/**
 * Verifies an Ed25519 signature with WebCrypto (Node from 20, and browsers on https pages). Returns false for bytes
 * that are not a key. Throws an `Error` if the engine has no Ed25519, because an unchecked proof is not an invalid
 * proof. Source: RFC 8032; Secure Curves in the Web Cryptography API.
 */
export async function checkEd25519(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const key = await importKey(publicKey)
  return (
    key !== undefined && (await subtle().verify('Ed25519', key, new Uint8Array(signature), new Uint8Array(message)))
  )
}

/** SHA-256 in lower-case hex, as manifests write hashes. */
export async function sha256Hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = await subtle().digest('SHA-256', bytes)
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

async function importKey(publicKey: Uint8Array): Promise<CryptoKey | undefined> {
  try {
    return await subtle().importKey('raw', new Uint8Array(publicKey), 'Ed25519', false, ['verify'])
  } catch (error) {
    if (error instanceof DOMException && error.name === 'DataError') return undefined
    throw new Error('This engine cannot check Ed25519 signatures.', { cause: error })
  }
}

function subtle(): SubtleCrypto {
  const found: SubtleCrypto | undefined = globalThis.crypto?.subtle
  if (found === undefined) throw new Error('WebCrypto is not available. In browsers it requires an https page.')
  return found
}
