import {
  type Address,
  bytesToHex,
  checksumAddress,
  type Hex,
  hexToBytes,
  keccak256,
  type Network,
  sameAddress,
  selectorOf,
  utf8,
} from '@purser/protocol'
import { encodeWords } from '../../platform/contract-calls.ts'
import { address, decodeCall, tuple, uint } from './abi.ts'
import type { CallMeaning } from './guard.ts'
import type { ChainLog } from './port.ts'
import { encodeBytesCall, uintAt } from './words.ts'

const depositForBurn = selectorOf('depositForBurn(uint256,uint32,bytes32,address,bytes32,uint256,uint32)')
const receiveMessage = selectorOf('receiveMessage(bytes,bytes)')
const usedNonces = selectorOf('usedNonces(bytes32)')
const getBlockNumber = selectorOf('getBlockNumber()')
const messageSent = bytesToHex(keccak256(utf8('MessageSent(bytes)')))

/** The contracts have one address on all main networks and another on all test networks. */
export function cctpContracts({ isTestnet }: Pick<Network, 'isTestnet'>): {
  readonly tokenMessenger: Address
  readonly messageTransmitter: Address
} {
  return isTestnet
    ? {
        tokenMessenger: '0x8FE6B999Dc680CcFDD5Bf7EB0974218be2542DAA',
        messageTransmitter: '0xE737e5cEBEEBa77EFE34D4aa090756590b1CE275',
      }
    : {
        tokenMessenger: '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d',
        messageTransmitter: '0x81D40F21F12A8F0E3252Bccb954D722d4c464B64',
      }
}

export interface Burn {
  readonly rawAmount: bigint
  readonly destinationDomain: number
  readonly recipient: Address
  readonly burnToken: Address
  /** Maximum fee for Circle, in the token's smallest unit. */
  readonly rawFeeMax: bigint
  /** 1000: attested early (fast transfer); 2000: attested once final. */
  readonly finalityThreshold: 1_000 | 2_000
}

/** Arguments of TokenMessengerV2's `depositForBurn` (circlefin/evm-cctp-contracts, v2). The recipient is padded to 32 bytes. */
const burnArguments = tuple({
  rawAmount: uint(256),
  destinationDomain: uint(32),
  recipient: address,
  burnToken: address,
  destinationCaller: uint(256),
  rawFeeMax: uint(256),
  finalityThreshold: uint(32),
})

/** TokenMessengerV2's `depositForBurn`. Anyone may deliver the message; it always pays the recipient. */
export function encodeDepositForBurn(burn: Burn): Hex {
  return encodeWords(depositForBurn, [
    burn.rawAmount,
    BigInt(burn.destinationDomain),
    burn.recipient,
    burn.burnToken,
    0n,
    burn.rawFeeMax,
    BigInt(burn.finalityThreshold),
  ])
}

/** MessageTransmitterV2's `receiveMessage`. */
export function encodeReceiveMessage({
  message,
  attestation,
}: {
  readonly message: Hex
  readonly attestation: Hex
}): Hex {
  return encodeBytesCall(receiveMessage, [message, attestation])
}

/** Call that returns a nonzero word when the message with this nonce was delivered. */
export function encodeUsedNonces(nonce: Hex): Hex {
  return encodeWords(usedNonces, [nonce])
}

/** Encodes the call of Multicall3 that returns `block.number`. */
export function encodeBlockNumber(): Hex {
  return encodeWords(getBlockNumber, [])
}

/**
 * Decodes the effect of a burn call; undefined when only a specific account could deliver it or the fee could take everything. `endOf` returns the
 * chain and USDC address of a domain.
 */
export function readDepositForBurn(
  data: Hex,
  endOf: (domain: number) => { readonly chainId: number; readonly token: Address } | undefined,
): CallMeaning | undefined {
  const burn = decodeCall(data, depositForBurn, burnArguments)
  const end = burn && endOf(Number(burn.destinationDomain))
  if (burn === undefined || end === undefined) return undefined
  const { rawAmount, recipient, burnToken: token, rawFeeMax, destinationCaller, finalityThreshold } = burn
  if (destinationCaller !== 0n || rawFeeMax >= rawAmount || ![1_000n, 2_000n].includes(finalityThreshold))
    return undefined
  return {
    spends: { token, rawAmount },
    arrives: { ...end, recipient, rawMin: rawAmount - rawFeeMax },
    changes: [{ token, account: 'supply', least: -rawAmount, most: -rawAmount }],
  }
}

/** The messages that a transaction sent, from MessageTransmitterV2's `MessageSent(bytes)` logs, in order. */
export function readMessagesSent(logs: readonly ChainLog[], messageTransmitter: Address): readonly Hex[] {
  const sent = logs.filter(
    ({ address, topics }) => sameAddress(address, messageTransmitter) && topics[0] === messageSent,
  )
  return sent.map(({ data }) => {
    const bytes = hexToBytes(data)
    const length = Number(uintAt(bytes, 32, 32) ?? 0n)
    return bytesToHex(bytes.subarray(64, 64 + length))
  })
}

/**
 * Whether an attested message equals the sent one, ignoring the fields that Circle fills in: nonce, executed finality, fee and expiration block.
 */
export function isSentMessage(attested: Hex, sent: Hex): boolean {
  return unfilled(attested) === unfilled(sent)
}

function unfilled(message: Hex): Hex {
  const bytes = Uint8Array.from(hexToBytes(message))
  for (const [offset, length] of filledIn) bytes.fill(0, offset, offset + length)
  return bytesToHex(bytes)
}

/** A parsed burn message. */
export interface BurnMessage {
  readonly sourceDomain: number
  readonly destinationDomain: number
  readonly nonce: Hex
  /** The account whose tokens were burned. */
  readonly sender: Address
  readonly recipient: Address
  readonly rawAmount: bigint
  readonly rawFee: bigint
  /** `block.number` of the destination chain at which the attestation expires; 0 for never. */
  readonly expirationBlock: bigint
}

/** Byte offsets in a v2 message (circlefin/evm-cctp-contracts, MessageV2 and BurnMessageV2). */
const at = { sourceDomain: 4, destinationDomain: 8, nonce: 12, finalityExecuted: 144, body: 148 } as const
const inBody = { mintRecipient: 36, amount: 68, messageSender: 100, feeExecuted: 164, expirationBlock: 196 } as const
const filledIn = [
  [at.nonce, 32],
  [at.finalityExecuted, 4],
  [at.body + inBody.feeExecuted, 32],
  [at.body + inBody.expirationBlock, 32],
] as const

/** Parses a message; undefined when it is not a version 2 burn. */
export function readBurnMessage(message: Hex): BurnMessage | undefined {
  const bytes = hexToBytes(message)
  const uint = (offset: number, length: number) => uintAt(bytes, offset, length)
  const account = (offset: number): Address | undefined => {
    const word = uint(offset, 32)
    if (word === undefined || word >> 160n !== 0n) return undefined
    return checksumAddress(`0x${word.toString(16).padStart(40, '0')}`)
  }
  const [sender, recipient] = [account(at.body + inBody.messageSender), account(at.body + inBody.mintRecipient)]
  const expirationBlock = uint(at.body + inBody.expirationBlock, 32)
  if (uint(0, 4) !== 1n || uint(at.body, 4) !== 1n) return undefined
  if (expirationBlock === undefined || sender === undefined || recipient === undefined) return undefined
  return {
    sourceDomain: Number(uint(at.sourceDomain, 4)),
    destinationDomain: Number(uint(at.destinationDomain, 4)),
    nonce: bytesToHex(bytes.subarray(at.nonce, at.nonce + 32)),
    ...{ sender, recipient },
    rawAmount: uint(at.body + inBody.amount, 32) ?? 0n,
    rawFee: uint(at.body + inBody.feeExecuted, 32) ?? 0n,
    expirationBlock,
  }
}
