import { z } from 'zod'
import { releaseHolds } from '../features/wallets/index.ts'
import { id } from '../platform/ids.ts'
import { text } from '../platform/wire.ts'
import { command } from './command.ts'

const Subject = z.union([id('mwt'), id('cad')], { error: 'must be the id of a managed wallet: mwt_… or cad_…' })

/** Releases deposits whose senders no source can screen, on the operator's decision. */
export const releaseHold = command({
  name: 'release-hold',
  summary: 'Release deposits that are on hold because no source can screen their senders; frozen money stays frozen.',
  options: {
    deposit: 'id of the deposit (wtx_…)',
    wallet: 'id of the managed wallet (mwt_… or cad_…), for all its deposits; --deposit or --wallet, not both',
    reason: 'why, for the audit log of the organisation (optional)',
  },
  schema: z
    .strictObject({ deposit: id('wtx').optional(), wallet: Subject.optional(), reason: text(500, 1).optional() })
    .refine(({ deposit, wallet }) => (deposit === undefined) !== (wallet === undefined), {
      path: ['deposit'],
      message: 'give --deposit or --wallet',
    }),
  async run(operator, { deposit, wallet, reason }) {
    const subject = deposit ?? wallet
    const released = subject === undefined ? 0 : await releaseHolds(operator, subject, reason)
    const result = released === 0 ? 'nothing is on hold there' : `${released} released from hold`
    return { lines: [`${subject}  ${result}`], json: { released }, exitCode: released === 0 ? 1 : 0 }
  },
})
