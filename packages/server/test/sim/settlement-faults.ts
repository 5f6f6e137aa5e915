import type { Mutation } from './mutation.ts'

/** A fault, and within how many seeds from the first the simulator finds it. */
export interface Fault extends Mutation {
  readonly within: number
}

/** Faults of settlement that the simulator must find: each is what somebody could write by mistake, or leave out. */
export const settlementFaults: readonly Fault[] = [
  {
    name: 'one-node-of-three-decides',
    file: 'chain/rpc/quorum.ts',
    find: 'Math.floor(rpc.voters.length / 2) + 1',
    replace: '1',
    within: 60,
  },
  {
    name: 'a-node-that-is-behind-says-yes',
    file: 'chain/rpc/receipts.ts',
    find: 'if (receipt.blockNumber > height) return undefined',
    replace: "if (receipt.blockNumber > height) return 'yes'",
    within: 60,
  },
  {
    name: 'a-block-without-a-receipt-says-yes',
    file: 'chain/rpc/receipts.ts',
    find: 'if (own === undefined) return undefined',
    replace: "if (own === undefined) return 'yes'",
    within: 60,
  },
  {
    name: 'receipts-are-not-confirmed',
    file: 'chain/lanes/finalize.ts',
    find: "verdicts[index] === 'yes'",
    replace: "verdicts[index] !== 'no'",
    within: 60,
  },
  {
    name: 'any-block-is-final',
    file: 'chain/lanes/finalize.ts',
    find: '>= BigInt(network.confirmationDepth)',
    replace: '>= 1n',
    within: 60,
  },
  {
    name: 'a-use-is-not-confirmed',
    file: 'chain/rpc/authorization-use.ts',
    find: "return verdict === 'yes' ? { outcome, receipt } : undefined",
    replace: "return verdict === 'no' ? undefined : { outcome, receipt }",
    within: 60,
  },
  {
    name: 'expiry-by-the-clock-of-the-process',
    file: 'features/relayer/check.ts',
    find: "inState('open'), inState('expired'), inState('used')]",
    replace:
      "inState('open'), rows.filter((row, index) => states[index] === 'expired' || (states[index] === 'open' && row.validBefore <= ctx.clock.now())), inState('used')]",
    within: 60,
  },
  {
    name: 'void-by-the-clock-of-the-process',
    file: 'features/payments/void.ts',
    find: "state: states[index] ?? 'undecided'",
    replace:
      "state: row.validBefore <= ctx.clock.now() && states[index] === 'open' ? 'expired' : (states[index] ?? 'undecided')",
    within: 60,
  },
  {
    name: 'expiry-at-the-newest-block',
    file: 'chain/rpc/states.ts',
    find: 'const payments: Finality = { depth: network.confirmationDepth }',
    replace: 'const payments: Finality = { depth: 1 }',
    within: 60,
  },
  {
    name: 'queues-do-not-rotate',
    file: 'features/relayer/queue-store.ts',
    find: 'export async function moveBack(tx: Tx, queues: readonly QueueKey[], turns: readonly TurnKey[]): Promise<void> {',
    replace:
      'export async function moveBack(tx: Tx, queues: readonly QueueKey[], turns: readonly TurnKey[]): Promise<void> {\n  if (queues.length + turns.length >= 0) return',
    within: 60,
  },
  {
    name: 'an-empty-queue-is-removed-with-its-lock-alone',
    file: 'features/relayer/queue-store.ts',
    find: `      where (q.network, q.alone, q.organisation_id, q.purpose, q.signer) in (select network, alone, organisation_id, purpose, signer from wanted)
      for key share`,
    replace: `      where (q.network, q.alone, q.organisation_id, q.purpose, q.signer) in (select network, alone, organisation_id, purpose, signer from wanted)`,
    within: 60,
  },
  {
    name: 'a-nonce-is-given-up-unseen',
    file: 'chain/lanes/follow.ts',
    find: "if ((await parts.chain.isNonceLost(transaction.sender, transaction.nonce, hashes)) === 'yes')",
    replace: 'if (hashes.length >= 0)',
    within: 60,
  },
  {
    name: 'a-relay-that-was-left-waits-at-once',
    file: 'features/relayer/store.ts',
    find: `attempts = greatest(r.attempts, g.attempts), next_attempt_at = null,
      check_at = now(), checks = 0`,
    replace: `attempts = greatest(r.attempts, g.attempts), next_attempt_at = now(),
      check_at = valid_before, checks = 0`,
    within: 60,
  },
  {
    name: 'a-reorganized-relay-is-sent-anew',
    file: 'features/relayer/handler.ts',
    find: '    await purpose.onReorganized?.(tx, own)\n  }',
    replace: '    await purpose.onReorganized?.(tx, own)\n  }\n  await markLeft(tx, carried)',
    within: 60,
  },
  {
    name: 'a-relay-in-a-transaction-is-withdrawn',
    file: 'features/relayer/store.ts',
    find: "and state = 'waiting' and attempts = 0 and transaction_id is null`)",
    replace: "and state in ('waiting', 'included')`)",
    within: 60,
  },
  {
    name: 'withdrawn-whatever-the-relayer-does',
    file: 'features/payments/facilitator/withdraw.ts',
    find: 'if (!(await relays.withdraw(tx, paymentPurpose, paymentId))) return false',
    replace: 'await relays.withdraw(tx, paymentPurpose, paymentId)',
    within: 60,
  },
  {
    name: 'ended-whatever-it-is-by-now',
    file: 'features/relayer/store.ts',
    find: 'on r.id = g.id and r.state = g.state and r.attempts = g.attempts',
    replace: 'on r.id = g.id',
    within: 60,
  },
  {
    name: 'an-included-relay-is-ended',
    file: 'features/relayer/store.ts',
    find: "where id = any(${relayIds}::bigint[]) and state in ('waiting', 'withdrawn') returning id",
    replace: "where id = any(${relayIds}::bigint[]) and state in ('waiting', 'withdrawn', 'included') returning id",
    within: 60,
  },
  {
    name: 'relays-are-taken-without-a-lock',
    file: 'features/relayer/store.ts',
    find: "and state = 'waiting' and next_attempt_at <= now()\n    order by id for update skip locked",
    replace: "and state = 'waiting' and next_attempt_at <= now()\n    order by id",
    within: 60,
  },
  {
    name: 'lanes-without-a-fence',
    file: 'platform/leases/store.ts',
    find: '  return sql`exists (\n    select from leases held where held.scope = ${scope} and held.shard = ${shard} and held.owner_token = ${ownerToken}',
    replace:
      '  return sql`true or exists (\n    select from leases held where held.scope = ${scope} and held.shard = ${shard} and held.owner_token = ${ownerToken}',
    within: 60,
  },
  {
    name: 'a-count-is-not-given-back',
    file: 'features/payments/give-back.ts',
    find: "if (status !== 'settled') return -1",
    replace: "if (status !== 'settled') return 0",
    within: 60,
  },
  {
    name: 'a-void-that-paid-is-not-counted',
    file: 'features/payments/give-back.ts',
    find: "return previousStatus === 'voided' || previousStatus === 'settlement_failed' ? 1 : 0",
    replace: 'return previousStatus === status ? 1 : 0',
    within: 60,
  },
  {
    name: 'gas-is-not-given-back',
    file: 'features/payments/give-back.ts',
    find: 'gasChange(row, -row.gasReservedNanoUsd)',
    replace: 'gasChange(row, 0n)',
    within: 60,
  },
  {
    name: 'gas-is-not-charged',
    file: 'features/payments/relay.ts',
    find: 'onSpent: (tx, spent) => chargeAll(ctx, tx, spent),',
    replace: '',
    within: 60,
  },
  {
    name: 'a-used-nonce-is-a-payment',
    file: 'features/relayer/forms/authorization.ts',
    find: "seen.has(fact('used', token, from, nonce)) && seen.has(fact('moved', token, from, to, BigInt(value)))",
    replace: "seen.has(fact('used', token, from, nonce))",
    within: 60,
  },
  {
    name: 'a-batch-that-was-mined-has-paid',
    file: 'features/relayer/handler.ts',
    find: '(isMoved.get(relay.transactionId)?.(relay.payload) === true ? moved : left)',
    replace: '(isMoved.has(relay.transactionId) ? moved : left)',
    within: 60,
  },
  {
    name: 'a-used-nonce-has-failed',
    file: 'features/relayer/forms/authorization.ts',
    find: "if (facts.nonceUsed) return 'used'",
    replace: "if (facts.nonceUsed) return refusedFor('FiatTokenV2: authorization is used or canceled')",
    within: 60,
  },
  {
    name: 'code-is-not-looked-up',
    file: 'features/relayer/batch.ts',
    find: 'partition(locked, ({ signer }) => coded.has(signer))',
    replace: 'partition(locked, ({ signer }) => coded.has(`${signer} none`))',
    within: 60,
  },
  {
    name: 'a-burner-is-sent-again',
    file: 'features/relayer/handler.ts',
    find: 'return alone && spent !== undefined && spent.gas > gasOf(payload)',
    replace: 'return alone && spent !== undefined && spent.gas < 0n',
    within: 60,
  },
]
