import { z } from 'zod'
import { type IndexGaps, moveIndices } from '../features/wallets/index.ts'
import { type RestoreOutcome, takeIntoService } from '../platform/witness/restored.ts'
import { type CommandOutcome, command } from './command.ts'

const sequenceGap = 1_000_000

const Gap = z.coerce.number().int().min(1).max(1_000_000)

export const restored = command({
  name: 'restored',
  summary: 'Put a database that was restored from a copy into service; until then nothing is derived, signed or sent.',
  options: {
    children: 'child addresses of each wallet to skip (default 10000)',
    accounts: 'master wallets of each organisation to skip (default 100)',
    'even-if-current': '"yes" if the marks of the witness were restored with the database',
  },
  schema: z.strictObject({
    children: Gap.default(10_000),
    accounts: Gap.default(100),
    'even-if-current': z.literal('yes').optional(),
  }),
  async run(operator, { children, accounts, ...options }) {
    const marks = await operator.openMarks?.()
    if (marks === undefined) {
      const reason = 'set WITNESS_DIR, or FILES_DIR or FILES_S3_ENDPOINT and its settings, as for purser serve'
      return { lines: [reason], json: { error: reason }, exitCode: 1 }
    }
    const gaps: IndexGaps = { children, accounts }
    try {
      const isForced = options['even-if-current'] === 'yes'
      const outcome = await takeIntoService({
        ...{ ...operator, marks, isForced, sequenceGap },
        move: async (tx) => ({ ...gaps, masterWallets: await moveIndices(tx, gaps) }),
      })
      return shown(outcome)
    } finally {
      marks.close()
    }
  },
})

function shown(outcome: RestoreOutcome): CommandOutcome {
  if (outcome.outcome === 'restored') {
    const lines = [
      `generation ${outcome.generation} begins`,
      'Running processes resume within seconds. Each account is compared with its chain before it sends anything new.',
    ]
    return { lines, json: outcome, exitCode: 0 }
  }
  const why = {
    unserved: 'no service has run on this database',
    current: 'the database is not behind: nothing to do',
  }
  return { lines: [why[outcome.outcome]], json: outcome, exitCode: 0 }
}
