import { createHmac } from 'node:crypto'
import { type HdCurve, type Keccak, keccak256, type Recover } from '@purser/protocol'
import { createDomainSeparators, type DomainSeparators } from './domain-separators.ts'

/** The elliptic curve and hash functions. Also passed to the protocol's key derivation. */
export interface Signatures extends HdCurve {
  readonly recover: Recover
  readonly keccak: Keccak
  readonly domainSeparators: DomainSeparators
  /** Compact signature (64 bytes, low s) and recovery bit over a 32-byte hash. */
  readonly sign: (
    hash: Uint8Array,
    privateKey: Uint8Array,
  ) => { readonly signature: Uint8Array; readonly yParity: 0 | 1 }
  readonly hmacSha512: NonNullable<HdCurve['hmacSha512']>
  /** `native` is libsecp256k1 through N-API (65 µs a recovery here), `wasm` is the library compiled to WebAssembly (250 µs). */
  readonly engine: 'native' | 'wasm'
}

/** Loads the curve and hash functions: the native curve if its binary is available, otherwise WebAssembly. */
export async function createSignatures(): Promise<Signatures> {
  const keccak = await createFastKeccak()
  const native = await loadNative()
  const hashes = { keccak, hmacSha512, domainSeparators: createDomainSeparators(keccak) }
  return native === undefined
    ? { ...(await loadWasm()), ...hashes, engine: 'wasm' }
    : { ...native, ...hashes, engine: 'native' }
}

function hmacSha512(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha512', key).update(message).digest()
}

async function createFastKeccak(): Promise<Keccak> {
  // The entry of the package has all of its functions: 0.8 MB of heap.
  const { default: hashes } = (await import('hash-wasm/dist/keccak.umd.min.js' as string)) as {
    default: Pick<typeof import('hash-wasm'), 'createKeccak'>
  }
  const hasher = await hashes.createKeccak(256)
  const keccak: Keccak = (bytes) => hasher.init().update(bytes).digest('binary')
  const probe = new Uint8Array([1, 2, 3])
  return Buffer.compare(keccak(probe), keccak256(probe)) === 0 ? keccak : keccak256
}

type Curve = Pick<Signatures, 'recover' | 'sign' | 'publicKeyOf' | 'addToPublicKey' | 'addToPrivateKey'>

/** npm `secp256k1` silently falls back to slow JavaScript, so its binding is imported directly. */
async function loadNative(): Promise<Curve | undefined> {
  try {
    const { default: curve } = (await import('secp256k1/bindings.js' as string)) as {
      default: typeof import('secp256k1')
    }
    return {
      recover(hash, signature, recovery) {
        try {
          return curve.ecdsaRecover(signature, recovery, hash, false)
        } catch {
          return undefined
        }
      },
      sign(hash, privateKey) {
        const { signature, recid } = curve.ecdsaSign(hash, privateKey)
        return { signature, yParity: recid === 0 ? 0 : 1 }
      },
      publicKeyOf: (privateKey) => curve.publicKeyCreate(privateKey, false),
      addToPublicKey: (publicKey, tweak) =>
        orNothing(() => curve.publicKeyTweakAdd(publicKey, tweak, false), /tweak was out of range/),
      addToPrivateKey(privateKey, tweak) {
        // The binding adds in place, so it gets a separate buffer that the caller can wipe later.
        const sum = new Uint8Array(new ArrayBuffer(privateKey.length))
        sum.set(privateKey)
        return orNothing(() => curve.privateKeyTweakAdd(sum, tweak), /tweak was out of range/)
      },
    }
  } catch {
    return undefined
  }
}

/** libsecp256k1 in WebAssembly, for machines without the native binary. */
export async function loadWasm(): Promise<Curve> {
  const curve = await import('tiny-secp256k1')
  return {
    recover(hash, signature, recovery) {
      try {
        return curve.recover(hash, signature, recovery, false) ?? undefined
      } catch {
        return undefined
      }
    },
    sign(hash, privateKey) {
      const { signature, recoveryId } = curve.signRecoverable(hash, privateKey)
      return { signature, yParity: recoveryId === 0 ? 0 : 1 }
    },
    publicKeyOf(privateKey) {
      const publicKey = curve.pointFromScalar(privateKey, false)
      if (publicKey === null) throw new Error('not a private key')
      return publicKey
    },
    addToPublicKey: (publicKey, tweak) =>
      orNothing(() => curve.pointAddScalar(publicKey, tweak, false), /Expected Tweak/) ?? undefined,
    addToPrivateKey: (privateKey, tweak) =>
      orNothing(() => curve.privateAdd(privateKey, tweak), /Expected Tweak/) ?? undefined,
  }
}

/** Returns undefined when the library rejects the sum with this message. Rethrows any other error. */
function orNothing<T>(sum: () => T, refusal: RegExp): T | undefined {
  try {
    return sum()
  } catch (error) {
    if (error instanceof Error && refusal.test(error.message)) return undefined
    throw error
  }
}
