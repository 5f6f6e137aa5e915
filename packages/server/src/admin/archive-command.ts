import { z } from 'zod'
import { archivePartition } from '../archive/archive.ts'
import { type Planned, planArchive } from '../archive/plan.ts'
import { onlyArchiver } from '../archive/store.ts'
import { instantOf } from '../platform/clock.ts'
import { type CommandOutcome, command, linesOr, type Operator } from './command.ts'

export const archive = command({
  name: 'archive',
  summary:
    'Move payments, audit records, events, deliveries and attempts of past months to files; without --run it shows the plan.',
  options: {
    before: 'first month that stays, such as 2026-10',
    run: '"yes" to do it',
  },
  schema: z.strictObject({
    before: z.string().regex(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-10'),
    run: z.literal('yes').optional(),
  }),
  async run(operator, { before, run }) {
    const { db, clock, keptDays } = operator
    const plan = () => planArchive(db, instantOf(`${before}-01T00:00:00Z`), { now: clock.now(), keptDays })
    if (run === undefined) return shown(await plan())
    const opened = await operator.openBlobs?.()
    if (opened === undefined) {
      const reason = 'set FILES_DIR, or FILES_S3_ENDPOINT and its settings, as for purser serve'
      return { lines: [reason], json: { error: reason }, exitCode: 1 }
    }
    try {
      // Planned under the lock: another run may have ended since.
      return await onlyArchiver(db, async () => archiveAll({ ...operator, blobs: opened.blobs }, await plan()))
    } finally {
      opened.close()
    }
  },
})

function shown(planned: readonly Planned[]): CommandOutcome {
  const lines = planned.map((one) => {
    const megabytes = (one.bytes / 2 ** 20).toFixed(1)
    const begun = one.isBegun ? ', begun' : ''
    return `${one.partition}  until ${monthBefore(one.endsAt)}  about ${one.rows} rows, ${megabytes} MiB  ${one.obstacle ?? 'ready'}${begun}`
  })
  return { lines: linesOr(lines, 'Nothing ends before that month.'), json: planned, exitCode: 0 }
}

/** `YYYY-MM` of the last instant before an exclusive end. */
function monthBefore(end: Date): string {
  return instantOf(end.getTime() - 1)
    .toISOString()
    .slice(0, 7)
}

async function archiveAll(
  deps: Operator & Parameters<typeof archivePartition>[0],
  planned: readonly Planned[],
): Promise<CommandOutcome> {
  const results = []
  for (const one of planned) {
    if (one.obstacle !== undefined) {
      results.push({ partition: one.partition, archived: false, says: one.obstacle })
      continue
    }
    const { rows, files } = await archivePartition(deps, one)
    const says = `archived, ${rows} rows in ${files.length - 1} files, manifest ${files.at(-1)}`
    results.push({ partition: one.partition, archived: true, says, rows: Number(rows), files })
  }
  const lines = results.map(({ partition, says }) => `${partition}  ${says}`)
  return { lines: linesOr(lines, 'Nothing ends before that month.'), json: results, exitCode: 0 }
}
