import type { Head } from './facts.ts'
import { createInspect } from './inspect.ts'
import { readPayerFunds } from './payer-funds.ts'
import { inspectPermit2 } from './permit2.ts'
import type { AuthorizationFacts, Chain, PayerFunds, PayerQuestion } from './port.ts'
import { electorateOf, requestAcceptance } from './rpc/acceptance.ts'
import type { NodeRpc, Rpc, Voter } from './rpc/rpc.ts'
import { type SentCall, trySending } from './try-sending.ts'

type PaymentReads = Pick<Chain, 'inspectAuthorization' | 'inspectPermit2' | 'payerFunds' | 'trySending'>

/**
 * The reads by which payments of others are taken: a majority of the configured nodes must accept a payment, since a payer who controls one of them
 * could invent a balance or a signature, and the settler would pay for transactions that revert. A single node decides alone.
 */
export function createPaymentReads(rpc: Rpc & NodeRpc, headOf: (rpc: Rpc) => Promise<Head>): PaymentReads {
  const tryOn = async (one: Rpc, call: SentCall): Promise<boolean> => trySending(one, call, await headOf(one))
  const inspect = createInspect(rpc)
  if (rpc.voters.length < 2)
    return {
      inspectAuthorization: inspect,
      inspectPermit2: (probe) => inspectPermit2(rpc, probe),
      payerFunds: (question) => readPayerFunds(rpc, question),
      trySending: (call) => tryOn(rpc, call),
    }
  const inspects = new Map(rpc.voters.map((voter) => [voter, createInspect(voter.rpc)]))
  return {
    async inspectAuthorization(probe) {
      const isAccepting = ({ simulation, nonceUsed, balance }: AuthorizationFacts): boolean =>
        simulation.ok && !nonceUsed && balance >= probe.authorization.value
      const query = (voter: Voter) => (inspects.get(voter) ?? inspect)(probe)
      const found = await requestAcceptance(electorateOf(rpc.voters), query, isAccepting)
      return found.isAccepted ? poorest(found.answers) : found.answer
    },
    async inspectPermit2(probe) {
      const { amount } = probe.settlement
      const found = await requestAcceptance(
        electorateOf(rpc.voters),
        ({ rpc: one }) => inspectPermit2(one, probe),
        ({ trial, nonceUsed, proxyDeployed, balance, allowance }) =>
          trial.ok && !nonceUsed && proxyDeployed && balance >= amount && allowance >= amount,
      )
      return found.isAccepted ? poorest(found.answers) : found.answer
    },
    async payerFunds(question) {
      const electorate = electorateOf(rpc.voters)
      const found = await requestAcceptance(
        electorate,
        ({ rpc: one }) => readPayerFunds(one, question),
        () => true,
      )
      return found.isAccepted ? agreedOf(question, found.answers, electorate.needed) : found.answer
    },
    async trySending(call) {
      const query = ({ rpc: one }: Voter) => tryOn(one, call)
      return (await requestAcceptance(electorateOf(rpc.voters), query, (isTaken) => isTaken)).isAccepted
    },
  }
}

/** The answer with the lowest balance: at least one honest node is among a majority. */
function poorest<T extends { readonly balance: bigint }>(answers: readonly T[]): T {
  return answers.reduce((lowest, answer) => (answer.balance < lowest.balance ? answer : lowest))
}

/** The lowest balance, and what all these nodes call spent: what one of them invents counts for nothing. */
function agreedOf({ nonces, permits }: PayerQuestion, answers: readonly PayerFunds[], needed: number): PayerFunds {
  const isAgreed = (spent: (funds: PayerFunds) => boolean): boolean => answers.filter(spent).length >= needed
  return {
    rawBalance: answers.reduce(
      (lowest, { rawBalance }) => (rawBalance < lowest ? rawBalance : lowest),
      answers[0]?.rawBalance ?? 0n,
    ),
    spentNonces: nonces.filter((nonce) => isAgreed(({ spentNonces }) => spentNonces.includes(nonce))),
    spentPermits: permits.filter((nonce) => isAgreed(({ spentPermits }) => spentPermits.includes(nonce))),
  }
}
