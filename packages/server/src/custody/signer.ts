import {
  type Address,
  addressOfPublicKey,
  bytesToHex,
  checksumAddress,
  domainSeparator,
  type Eip712Domain,
  type Hex,
  hexToBytes,
  sameAddress,
  type TransferAuthorization,
  transferWithAuthorizationDigest,
} from '@purser/protocol'
import { createTempoTransactions, type Signatures, withFeePayer, withSender } from '../chain/index.ts'
import type { SignedTransaction, Signer, TempoFields, TempoTransaction, TransactionFields } from '../chain/port.ts'
import { encodeTransaction } from './eip-1559.ts'

/** A tenant's account. It signs typed data and never a bare hash. */
export interface WalletSigner extends Signer {
  /** EIP-3009 `transferWithAuthorization`, 65 bytes. Throws when the authorization is from another account. */
  signTransferWithAuthorization(domain: Eip712Domain, authorization: TransferAuthorization): Promise<Hex>
  /** Tempo's type 0x76. Pass a sponsored transaction to `signTempoFeePayer` next. */
  signTempoTransaction(fields: TempoFields): Promise<TempoTransaction>
}

/** An account that signs digests. Only this file passes digests to it. */
interface Account {
  readonly address: Address
  signDigest(digest: Uint8Array): Promise<{ readonly signature: Uint8Array; readonly yParity: 0 | 1 }>
}

/**
 * A signer for one service key. The key is unsealed for each signature and wiped afterwards. An error from `beforeSigning` prevents the signature.
 */
export async function createSigner(
  openKey: () => Promise<Uint8Array>,
  signatures: Signatures,
  beforeSigning: () => void = () => undefined,
): Promise<Signer> {
  const found = addressOfPublicKey(await withKey(openKey, signatures.publicKeyOf), signatures.keccak)
  if (found === undefined) throw new Error('a private key has no account')
  const { address, signTempoFeePayer, signTransaction } = createAccountSigner(
    {
      address: checksumAddress(found, signatures.keccak),
      async signDigest(digest) {
        beforeSigning()
        return withKey(openKey, (privateKey) => signatures.sign(digest, privateKey))
      },
    },
    signatures,
  )
  return { address, signTempoFeePayer, signTransaction }
}

/** A signer for the faucet's key, which the operator configures and which has only test money. */
export function createFaucetSigner(privateKey: Hex, signatures: Signatures): WalletSigner {
  const key = hexToBytes(privateKey)
  const address = addressOfPublicKey(signatures.publicKeyOf(key), signatures.keccak)
  if (address === undefined) throw new Error('the key of the faucet has no account')
  const signDigest = async (digest: Uint8Array) => signatures.sign(digest, key)
  return createAccountSigner({ address: checksumAddress(address, signatures.keccak), signDigest }, signatures)
}

/** All signatures of an account, each from typed fields. */
export function createAccountSigner(account: Account, signatures: Signatures): WalletSigner {
  return {
    address: account.address,
    signTransaction: (fields) => signTransaction(account, fields, signatures),
    signTempoFeePayer: (transaction, feeToken) => signFeePayer(account, transaction, { feeToken, signatures }),
    signTempoTransaction: (fields) => signTempoTransaction(account, fields, signatures),
    async signTransferWithAuthorization(domain, authorization) {
      if (!sameAddress(authorization.from, account.address))
        throw new Error('the authorization is from another account')
      const separator = domainSeparator(domain, signatures.keccak)
      return sign65(account, transferWithAuthorizationDigest(separator, authorization, signatures.keccak))
    },
  }
}

async function signTransaction(
  account: Account,
  transaction: TransactionFields,
  { keccak }: Signatures,
): Promise<SignedTransaction> {
  const { unsigned, signed } = encodeTransaction(transaction)
  const raw = signed(await account.signDigest(keccak(unsigned)))
  return { raw: bytesToHex(raw), hash: bytesToHex(keccak(raw)) }
}

async function signFeePayer(
  account: Account,
  transaction: TempoTransaction,
  { feeToken, signatures }: { readonly feeToken: Address; readonly signatures: Signatures },
): Promise<SignedTransaction> {
  if (sameAddress(transaction.sender, account.address)) throw new Error('an account cannot sponsor itself')
  const raw = await withFeePayer(transaction, feeToken, {
    address: account.address,
    sign: (digest) => sign65(account, digest),
  })
  return { raw, hash: bytesToHex(signatures.keccak(hexToBytes(raw))) }
}

/** Signs a Tempo transaction and decodes it again to verify its sender before returning it. */
async function signTempoTransaction(
  account: Account,
  fields: TempoFields,
  signatures: Signatures,
): Promise<TempoTransaction> {
  const raw = await withSender(fields, {
    address: account.address,
    sign: (payload) => account.signDigest(signatures.keccak(payload)),
  })
  const decoded = await createTempoTransactions(signatures).decode(raw)
  if (!decoded.ok) throw new Error(`the transaction cannot be signed: ${decoded.fault}`)
  if (!sameAddress(decoded.transaction.sender, account.address))
    throw new Error('the signature is from another account')
  return decoded.transaction
}

async function sign65(account: Account, digest: Uint8Array): Promise<Hex> {
  const { signature, yParity } = await account.signDigest(digest)
  return `${bytesToHex(signature)}${yParity === 0 ? '1b' : '1c'}`
}

async function withKey<T>(openKey: () => Promise<Uint8Array>, use: (privateKey: Uint8Array) => T): Promise<T> {
  const privateKey = await openKey()
  try {
    return use(privateKey)
  } finally {
    privateKey.fill(0)
  }
}
