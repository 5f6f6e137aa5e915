import type { Address } from '@purser/protocol'
import { decodeAbiParameters, type Hex, hexToBytes, keccak256, type PublicClient, pad, slice, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { aPartner, type PartnerDouble, type PartnerRequest, type PartnerResponse } from './partner-double.ts'

/** The values that Circle's attesters fill in before they sign. */
export interface Attested {
  readonly nonce?: Hex
  readonly threshold?: 1_000 | 2_000
  readonly rawFee?: bigint
  readonly expirationBlock?: bigint
  /** For lies: another recipient and amount than were burned. */
  readonly recipient?: Address
  readonly depositor?: Address
  readonly rawAmount?: bigint
  /** Whether another key signs in place of the attester's. */
  readonly isForged?: boolean
}

/** Circle's attestation service over the burns of one chain. */
export interface Iris extends PartnerDouble {
  readonly attester: Address
  fees: readonly { readonly finalityThreshold: number; readonly minimumFee: number }[]
  /** The answer for a burn that is in a block. */
  says: (burnt: Burnt) => PartnerResponse | Promise<PartnerResponse>
  reattested: number
}

export interface Burnt {
  readonly txHash: Hex
  /** As the chain emitted it: without nonce, fee and expiry. */
  readonly sent: Hex
  /** The complete, attested message. */
  complete(changes?: Attested): Promise<PartnerResponse>
  pending(delayReason?: string): PartnerResponse
}

const messageSent = keccak256(toHex('MessageSent(bytes)'))
const usual = [
  { finalityThreshold: 1_000, minimumFee: 1 },
  { finalityThreshold: 2_000, minimumFee: 0 },
]

/** The double answers 404 for a burn that is in no block, as Circle's service does. */
export async function anIris(source: Pick<PublicClient, 'getTransactionReceipt'>): Promise<Iris> {
  const attester = privateKeyToAccount(generatePrivateKey())
  const stranger = privateKeyToAccount(generatePrivateKey())
  const now: Pick<Iris, 'fees' | 'says' | 'reattested'> = {
    fees: usual,
    says: (burnt) => burnt.complete(),
    reattested: 0,
  }
  const burntIn = async (txHash: Hex): Promise<Burnt | undefined> => {
    const receipt = await source.getTransactionReceipt({ hash: txHash }).catch(() => undefined)
    const sent = receipt?.logs.flatMap(({ topics, data }) => messageIn(topics, data))[0]
    if (sent === undefined) return undefined
    const nonce = keccak256(txHash)
    return {
      ...{ txHash, sent },
      pending: (delayReason) => ({
        json: { messages: [{ ...blank, eventNonce: nonce, delayReason: delayReason ?? null }] },
      }),
      async complete(changes = {}) {
        const message = attestedOf(sent, { nonce, ...changes })
        const signer = changes.isForged === true ? stranger : attester
        const attestation = await signer.sign({ hash: keccak256(message) })
        const reported = { message, attestation, cctpVersion: 2, status: 'complete', delayReason: null }
        return { json: { messages: [{ ...reported, eventNonce: changes.nonce ?? nonce }] } }
      },
    }
  }
  const response = async ({ method, path, query }: PartnerRequest): Promise<PartnerResponse> => {
    if (path.startsWith('/v2/burn/USDC/fees/')) return { json: now.fees }
    if (method === 'POST' && path.startsWith('/v2/reattest/')) {
      now.reattested += 1
      return { json: { message: 'Re-attestation successfully requested', nonce: path.slice(13) } }
    }
    const burnt = await burntIn((query.transactionHash ?? '0x') as Hex)
    return burnt === undefined ? { status: 404, json: { code: 404, error: 'Message not found' } } : now.says(burnt)
  }
  return Object.assign(now, await aPartner(response), { attester: attester.address })
}

const blank = {
  attestation: 'PENDING',
  message: '0x',
  cctpVersion: 2,
  status: 'pending_confirmations',
  decodedMessage: null,
}

function messageIn(topics: readonly Hex[], data: Hex): Hex[] {
  return topics[0] === messageSent ? [...decodeAbiParameters([{ type: 'bytes' }], data)] : []
}

/** Fills in what the chain leaves open (circlefin/evm-cctp-contracts, MessageV2 and BurnMessageV2). */
function attestedOf(sent: Hex, { nonce, threshold, rawFee, expirationBlock, ...lie }: Attested): Hex {
  const requested = slice(sent, 140, 144)
  const word = (value: bigint) => toHex(value, { size: 32 })
  const parts: [number, Hex | undefined][] = [
    [12, nonce],
    [144, threshold === undefined ? requested : toHex(threshold, { size: 4 })],
    [148 + 36, lie.recipient && pad(lie.recipient)],
    [148 + 68, lie.rawAmount === undefined ? undefined : word(lie.rawAmount)],
    [148 + 100, lie.depositor && pad(lie.depositor)],
    [148 + 164, word(rawFee ?? 0n)],
    [148 + 196, word(expirationBlock ?? 0n)],
  ]
  const bytes = hexToBytes(sent)
  for (const [at, part] of parts) if (part !== undefined) bytes.set(hexToBytes(part), at)
  return toHex(bytes)
}
