import {
  type Address,
  bytesToHex,
  type Call3,
  decodeAuthorizationUsedLog,
  decodeTransferLog,
  type Eip712Domain,
  encodeAggregate3,
  encodeTransferWithAuthorization,
  type Hex,
  multicall3Address,
  type Network,
  type TransferAuthorization,
  type TransferSignature,
  tokenByAddress,
} from '@purser/protocol'
import { unixSeconds } from '../../../platform/clock.ts'
import type { SignedTransfer, TransferRow } from './lane-store.ts'
import { gasOfTransfer } from './request.ts'

const gasOfTransaction = 60_000n

/** What a child signs: all of it stood in the row before anybody was asked to sign. */
export function authorizationOf(transfer: TransferRow): TransferAuthorization {
  return {
    from: transfer.fromAddress,
    to: transfer.toAddress,
    value: transfer.rawAmount,
    validAfter: 0n,
    validBefore: BigInt(unixSeconds(transfer.validBefore)),
    nonce: bytesToHex(transfer.nonce),
  }
}

/** The domain under which the transfer's token checks signatures. */
export function domainOf(network: Network, asset: Address): Eip712Domain {
  const eip712 = tokenByAddress(network, asset)?.eip712
  if (eip712 === undefined || eip712 === null) throw new Error(`${asset} on ${network.name} takes no authorisations`)
  return { ...eip712, chainId: network.chainId, verifyingContract: asset }
}

/** A stored signature of 65 bytes: r, s and v. */
export function signatureOf({ signature }: SignedTransfer): TransferSignature {
  const v = signature[64]
  if (v !== 27 && v !== 28) throw new Error('a stored signature has no v')
  return { kind: 'ecdsa', v, r: bytesToHex(signature.subarray(0, 32)), s: bytesToHex(signature.subarray(32, 64)) }
}

/**
 * The one transaction that carries these transfers; each may fail by itself. The gas limit is a sum of fixed budgets and not an
 * estimate, because an estimate of calls that may fail finds the gas at which they fail.
 */
export function sweepCall(transfers: readonly SignedTransfer[]): { to: Address; data: Hex; gasLimit: bigint } {
  const calls = transfers.map(callOf)
  const gasLimit = gasOfTransaction + gasOfTransfer * BigInt(transfers.length)
  return { to: multicall3Address, data: encodeAggregate3(calls), gasLimit }
}

function callOf(transfer: SignedTransfer): Call3 {
  const callData = encodeTransferWithAuthorization(authorizationOf(transfer), signatureOf(transfer))
  return { target: transfer.asset, allowFailure: true, callData }
}

interface TokenLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/** Says of transfers whether these logs show that their money moved: the authorisation was used, and its amount went to the master. */
export function sweptBy(logs: readonly TokenLog[]): (transfer: TransferRow) => boolean {
  const seen = new Set(logs.flatMap((log) => factOf(log) ?? []))
  return ({ asset, fromAddress, toAddress, rawAmount, nonce }) =>
    seen.has(fact('used', asset, fromAddress, bytesToHex(nonce))) &&
    seen.has(fact('moved', asset, fromAddress, toAddress, rawAmount))
}

function factOf(log: TokenLog): string | undefined {
  const used = decodeAuthorizationUsedLog(log)
  if (used !== undefined) return fact('used', log.address, used.authorizer, used.nonce)
  const moved = decodeTransferLog(log)
  return moved === undefined ? undefined : fact('moved', log.address, moved.from, moved.to, moved.value)
}

function fact(...words: readonly (string | bigint)[]): string {
  return words.join(' ').toLowerCase()
}
