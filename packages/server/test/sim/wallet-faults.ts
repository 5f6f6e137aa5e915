// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pieces of the source, where templates stand
import type { Fault } from './mutation.ts'

/** Faults of managed wallets that the simulator must find. Each is a plausible mistake or omission. */
export const walletFaults: readonly Fault[] = [
  {
    name: 'a-reservation-is-not-counted',
    file: 'features/funds/snapshot.ts',
    find: 'const reserved = raw + gas',
    replace: 'const reserved = 0n * (raw + gas)',
    within: 60,
  },
  {
    name: 'a-reservation-is-never-released',
    file: 'features/funds/store.ts',
    find: '  if (subjects.length === 0) return\n',
    replace: '  if (subjects.length >= 0) return\n',
    within: 30,
    isQuick: true,
  },
  {
    name: 'receipts-of-transfers-are-not-confirmed',
    file: 'chain/lanes/finalize.ts',
    find: "verdicts[index] === 'yes'",
    replace: "verdicts[index] !== 'no'",
    within: 60,
  },
  {
    name: 'a-listed-sender-is-booked-as-clear',
    file: 'features/wallets/deposits/store-scan.ts',
    find: 'return { status: screened.result, isOnHold: isOnHold(screened), isScreened: true }',
    replace: "return { status: 'clear', isOnHold: false && isOnHold(screened), isScreened: true }",
    within: 300,
    testedBy: 'src/features/wallets/screening/holds.test.ts',
  },
  {
    name: 'a-frozen-amount-may-leave',
    file: 'features/funds/snapshot.ts',
    find: 'available: balance - frozen - unscreened',
    replace: 'available: balance - unscreened',
    within: 40,
  },
  {
    name: 'a-listed-recipient-is-paid',
    file: 'features/transfers/plan.ts',
    find: "if (screened.result === 'flagged') throw fail('recipient-flagged')",
    replace: '',
    within: 30,
    isQuick: true,
  },
  {
    name: 'a-nonce-is-reused',
    file: 'chain/lanes/sign.ts',
    find: 'const { nonce, toAddress: to, value, gasLimit } = row',
    replace: 'const { toAddress: to, value, gasLimit } = row\n  const nonce = row.nonce - (row.nonce % 2n)',
    within: 30,
    isQuick: true,
  },
  {
    name: 'a-cap-is-given-back-though-the-money-left',
    file: 'features/transfers/ending.ts',
    find: "return status === 'failed' && reason !== 'not-received'",
    replace: "return status !== 'pending' && reason !== 'not-received'",
    within: 100,
    isQuick: true,
    foundBy: 82,
  },
  {
    name: 'the-next-step-gets-no-nonce',
    file: 'features/transfers/handler.ts',
    find: 'for (const { transfer } of preparing) await advance(ctx, tx, transfer)',
    replace: '',
    within: 30,
  },
  {
    name: 'one-node-reads-a-range-twice',
    file: 'features/wallets/deposits/several-nodes.ts',
    find: 'const nodes = reads.eachNode()',
    replace: 'const nodes = [reads]',
    within: 40,
    isQuick: true,
    foundBy: 31,
  },
]
