import {
  type Address,
  type Call3,
  decodeAuthorizationUsedLog,
  decodeTransferLog,
  encodeAggregate3,
  encodePermit2Settle,
  encodeTransferWithAuthorization,
  type Hex,
  multicall3Address,
  type TransferAuthorization,
} from '@purser/protocol'
import { settlementOf } from './permit2/settlement.ts'
import type { SettlementRow } from './settlement-store.ts'
import type { StoredAuthorization, StoredSettlement } from './store.ts'

/** Gas for one authorisation inside a batch; what is not used is not paid. Contract accounts may run code of their own. */
const gasOfKind = { ecdsa: 100_000n, bytes: 400_000n } as const
const gasOfDeployment = 1_200_000n
const gasOfPermit2 = 400_000n
const gasOfTransaction = 60_000n

export interface SettlementCall {
  readonly to: Address
  readonly data: Hex
  readonly gasLimit: bigint
}

/**
 * The one transaction that settles these payments. Alone, an authorisation goes straight to its token and a permit to its
 * proxy, which may take it from nobody but the settler; several go through Multicall3, each allowed to fail by itself. The gas limit is a sum of fixed budgets and not an estimate,
 * because an estimate of calls that may fail finds the gas at which they fail.
 */
export function settlementCall(payments: readonly SettlementRow[]): SettlementCall {
  const calls = payments.flatMap(callsOf)
  const gasLimit = payments.reduce((gas, payment) => gas + gasOf(payment.settlement), gasOfTransaction)
  const only = calls.length === 1 ? calls[0] : undefined
  if (only !== undefined) return { to: only.target, data: only.callData, gasLimit }
  return { to: multicall3Address, data: encodeAggregate3(calls), gasLimit }
}

/** Gas that one payment costs the operator at most, beside the transaction that carries it; the day's budget is charged with it. */
export function gasOf(settlement: StoredSettlement): bigint {
  if (settlement.kind === 'tempo') return BigInt(settlement.sponsoredGas)
  if (settlement.kind === 'permit2') return gasOfPermit2
  return gasOfKind[settlement.signature.kind] + (settlement.deployment === null ? 0n : gasOfDeployment)
}

function callsOf(payment: SettlementRow): Call3[] {
  const { settlement } = payment
  if (settlement.kind === 'permit2') {
    const callData = encodePermit2Settle(settlementOf(settlement))
    return [{ target: settlement.spender, allowFailure: true, callData }]
  }
  const transfer: Call3 = {
    target: payment.asset as Address,
    allowFailure: true,
    callData: encodeTransferWithAuthorization(authorizationOf(settlement), settlement.signature),
  }
  if (settlement.deployment === null) return [transfer]
  return [
    { target: settlement.deployment.factory, allowFailure: true, callData: settlement.deployment.calldata },
    transfer,
  ]
}

export function authorizationOf(settlement: StoredAuthorization): TransferAuthorization {
  return {
    from: settlement.from,
    to: settlement.to,
    value: BigInt(settlement.value),
    validAfter: BigInt(settlement.validAfter),
    validBefore: BigInt(settlement.validBefore),
    nonce: settlement.nonce,
  }
}

export interface TokenLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/**
 * Says of payments whether these logs show that their money moved: the token used the authorisation, and moved its value
 * from its payer to its receiver. Permit2 leaves no log of a nonce: a permit is alone in the transaction whose logs are asked about. A success status alone proves nothing, since calls in a batch may fail one by one.
 * Every log is read once, however many payments are asked about.
 */
export function settledBy(logs: readonly TokenLog[]): (payment: SettlementRow) => boolean {
  const seen = new Set(logs.flatMap((log) => factOf(log) ?? []))
  return ({ asset, settlement }) => {
    if (settlement.kind === 'permit2') {
      const { token, owner, witness, charged } = settlement
      return seen.has(movedFact(token, owner, witness.to, BigInt(charged)))
    }
    const { from, to, value, nonce } = settlement
    return seen.has(usedFact(asset, from, nonce)) && seen.has(movedFact(asset, from, to, BigInt(value)))
  }
}

function factOf(log: TokenLog): string | undefined {
  const used = decodeAuthorizationUsedLog(log)
  if (used !== undefined) return usedFact(log.address, used.authorizer, used.nonce)
  const moved = decodeTransferLog(log)
  return moved === undefined ? undefined : movedFact(log.address, moved.from, moved.to, moved.value)
}

function usedFact(asset: string, from: string, nonce: string): string {
  return `used ${asset} ${from} ${nonce}`.toLowerCase()
}

function movedFact(asset: string, from: string, to: string, value: bigint): string {
  return `moved ${asset} ${from} ${to} ${value}`.toLowerCase()
}
