import {
  type Address,
  bytesToHex,
  type Hex,
  hexToBytes,
  isAddress,
  isHex,
  parseEcdsa,
  readUint256,
  recoverAddress,
  sameAddress,
  uint256ToBytes,
} from '@purser/protocol'
import type { Transaction } from 'viem/tempo'
import type { TempoCall, TempoDecoded, TempoFields, TempoTransaction, TempoTransactions } from '../port.ts'
import type { Signatures } from '../signatures/signatures.ts'

/** Longest transaction that is decoded; one transfer takes about 400 bytes. */
const rawBytesMax = 8_192

type Fields = Transaction.TransactionSerializableTempo
type Codec = typeof Transaction

/** Loaded with the first transaction: it has 1,300 modules and takes 80 MB, and most deployments never need it. */
const loadCodec = async (): Promise<Codec> => (await import('viem/tempo')).Transaction

/** Decodes Tempo transactions of type 0x76, and of type 0x78, which requests a sponsor (Tempo Transaction specification). */
export function createTempoTransactions(signatures: Pick<Signatures, 'recover' | 'keccak'>): TempoTransactions {
  return {
    async decode(raw) {
      const codec = await loadCodec()
      const fields = readFields(codec, raw)
      if (typeof fields === 'string') return { ok: false, fault: fields }
      try {
        return await decodeFields(codec, fields, signatures)
      } catch {
        return { ok: false, fault: 'the transaction cannot be read' }
      }
    },
  }
}

/** Adds the sponsor's signature to a transaction and returns the final bytes. Throws when the transaction does not need a sponsor. */
export async function withFeePayer(
  transaction: TempoTransaction,
  feeToken: Address,
  sponsor: { readonly address: Address; readonly sign: (digest: Uint8Array) => Promise<Hex> },
): Promise<Hex> {
  const codec = await loadCodec()
  const fields = readFields(codec, transaction.raw)
  if (typeof fields === 'string' || transaction.feePaidBy !== 'sponsor')
    throw new Error('the transaction does not need a sponsor')
  const refuse = () => Promise.reject(new Error('a sponsor signs only for fees'))
  const feePayer = {
    address: sponsor.address,
    publicKey: '0x',
    source: 'custody',
    type: 'local',
    sign: ({ hash }: { readonly hash: Hex }) => sponsor.sign(hexToBytes(hash)),
    signMessage: refuse,
    signTransaction: refuse,
    signTypedData: refuse,
  } as const
  return codec.serialize({ ...fields, from: transaction.sender, feeToken, feePayer })
}

/**
 * Signs a transaction with its account and returns the bytes: final, or for the sponsor when one pays. Throws when the fee token is set although a
 * sponsor chooses it, and for times and nonces out of Tempo's range.
 */
export async function withSender(
  fields: TempoFields,
  account: {
    readonly address: Address
    readonly sign: (payload: Uint8Array) => Promise<{ readonly signature: Uint8Array; readonly yParity: 0 | 1 }>
  },
): Promise<Hex> {
  const codec = await loadCodec()
  const plain = serializable(fields)
  const { signature, yParity } = await account.sign(hexToBytes(await codec.serialize(plain)))
  const [r, s] = [readUint256(signature, 0), readUint256(signature, 32)]
  return codec.serialize({
    ...plain,
    from: account.address,
    signature: { type: 'secp256k1', signature: { r, s, yParity } },
  })
}

function serializable(fields: TempoFields): Fields {
  const sponsored = fields.feePaidBy === 'sponsor'
  if (sponsored && fields.feeToken !== undefined) throw new RangeError('the sponsor chooses the fee token')
  return {
    type: 'tempo',
    chainId: fields.chainId,
    calls: fields.calls.map(({ to, value, data }) => ({ ...(to !== undefined && { to }), value, data })),
    nonceKey: fields.nonceKey,
    nonce: wholeNumber(fields.nonce),
    gas: fields.gasLimit,
    maxFeePerGas: fields.maxFeePerGas,
    maxPriorityFeePerGas: fields.maxPriorityFeePerGas,
    ...(fields.validBefore !== undefined && { validBefore: wholeNumber(fields.validBefore) }),
    ...(fields.validAfter !== undefined && { validAfter: wholeNumber(fields.validAfter) }),
    ...(fields.feeToken !== undefined && { feeToken: fields.feeToken }),
    ...(sponsored && { feePayerSignature: null }),
  }
}

/** Converts to the codec's number type. Throws instead of rounding, since a rounded nonce or time would be another transaction. */
function wholeNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError('not a nonce or a time')
  return number
}

function readFields(codec: Codec, raw: Hex): Fields | string {
  if (raw.length > 2 + rawBytesMax * 2) return `the transaction is longer than ${rawBytesMax} bytes`
  if (!isHex(raw) || !isTempoRaw(raw)) return 'the transaction is not of type 0x76'
  try {
    return codec.deserialize(raw)
  } catch {
    return 'the transaction cannot be read'
  }
}

function isTempoRaw(raw: Hex): raw is `0x76${string}` | `0x78${string}` {
  return raw.startsWith('0x76') || raw.startsWith('0x78')
}

async function decodeFields(
  codec: Codec,
  fields: Fields,
  signatures: Pick<Signatures, 'recover' | 'keccak'>,
): Promise<TempoDecoded> {
  const fault = unsupportedReason(fields)
  if (fault !== undefined) return { ok: false, fault }
  const sender = await senderOf(codec, fields, signatures)
  if (sender === undefined) return { ok: false, fault: 'the signature is not from an ordinary account' }
  // A sponsor request states its sender in plain text, which is not authenticated.
  if (fields.from !== undefined && !sameAddress(fields.from, sender))
    return { ok: false, fault: 'the signature does not match the sender' }
  const isFinal = fields.feePayerSignature === undefined
  const raw = readHex(await codec.serialize({ ...fields, from: sender }))
  const hash = isFinal ? bytesToHex(signatures.keccak(hexToBytes(raw))) : undefined
  return {
    ok: true,
    transaction: { ...fieldsOf(fields), raw, hash, sender, feePaidBy: isFinal ? 'sender' : 'sponsor' },
  }
}

/** Rejects fields that this service does not support, since they could do more than the call that is checked. */
function unsupportedReason(fields: Fields): string | undefined {
  const { accessList, keyAuthorization, signature, feePayerSignature } = fields
  if (signature === undefined) return 'the transaction is not signed'
  if (signature.type !== 'secp256k1')
    return 'only transactions signed with a secp256k1 key are accepted; broadcast this one and send its hash'
  if (feePayerSignature !== undefined && feePayerSignature !== null)
    return 'another sponsor signed for the fee; broadcast the transaction and send its hash'
  if ((accessList?.length ?? 0) > 0) return 'the transaction has an access list'
  if ('authorizationList' in fields) return 'the transaction has delegations'
  if (keyAuthorization !== undefined) return 'the transaction authorizes an access key'
  return undefined
}

/**
 * Recovers the sender from the digest of these fields, so that anything lost in decoding leads to another sender. A signature with a high s is
 * refused, because it is a second encoding of the same signature.
 */
async function senderOf(
  codec: Codec,
  fields: Fields,
  signatures: Pick<Signatures, 'recover' | 'keccak'>,
): Promise<Address | undefined> {
  if (fields.signature?.type !== 'secp256k1') return undefined
  const { r, s, yParity } = fields.signature.signature
  const parsed = parseEcdsa(
    Uint8Array.from([...uint256ToBytes(BigInt(r)), ...uint256ToBytes(BigInt(s)), Number(yParity)]),
  )
  if (typeof parsed === 'string') return undefined
  const payload = hexToBytes(await codec.serialize({ ...fields, signature: undefined }))
  return recoverAddress(signatures.recover, signatures.keccak, signatures.keccak(payload), parsed)
}

function fieldsOf(fields: Fields): Omit<TempoTransaction, 'raw' | 'hash' | 'sender' | 'feePaidBy'> {
  return {
    chainId: fields.chainId,
    calls: fields.calls.map(callOf),
    nonceKey: fields.nonceKey ?? 0n,
    nonce: BigInt(fields.nonce ?? 0),
    validBefore: fields.validBefore === undefined ? undefined : BigInt(fields.validBefore),
    validAfter: fields.validAfter === undefined ? undefined : BigInt(fields.validAfter),
    gasLimit: fields.gas ?? 0n,
    maxFeePerGas: fields.maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: fields.maxPriorityFeePerGas ?? 0n,
    feeToken: typeof fields.feeToken === 'string' && isAddress(fields.feeToken) ? fields.feeToken : undefined,
  }
}

function callOf(call: Fields['calls'][number]): TempoCall {
  return {
    to: call.to !== undefined && isAddress(call.to) ? call.to : undefined,
    value: call.value ?? 0n,
    data: call.data ?? '0x',
  }
}

function readHex(text: string): Hex {
  if (!isHex(text)) throw new Error('not hexadecimal')
  return text
}
