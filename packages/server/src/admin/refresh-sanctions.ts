import { z } from 'zod'
import { ListRefused, refreshList } from '../partners/screening/index.ts'
import { createOutbound } from '../platform/outbound.ts'
import { command } from './command.ts'

const day = /^\d{4}-\d\d-\d\d$/

/** Brings a sanctions list by hand: where the deployment has no way out, or before the daily refresh comes round. */
export const refreshSanctions = command({
  name: 'refresh-sanctions',
  summary: 'Take a new sanctions list from a file or an address: OFAC’s sdn_advanced.xml, or one address a line.',
  options: {
    file: 'path of the list',
    url: 'http(s) address of the list; --file or --url, not both',
    'as-of': 'YYYY-MM-DD on which you fetched it or saw that it holds (for a file; otherwise the day that it bears)',
    'accept-count': 'how many addresses it holds, when a fifth or more are gone and you have seen that this is right',
  },
  schema: z
    .strictObject({
      file: z.string().min(1).optional(),
      url: z.url({ protocol: /^https?$/ }).optional(),
      'as-of': z.string().regex(day, 'is a day such as 2026-11-20').optional(),
      'accept-count': z.coerce.number().int().min(1).optional(),
    })
    .refine(({ file, url }) => (file === undefined) !== (url === undefined), {
      path: ['file'],
      message: 'give --file or --url',
    }),
  async run(operator, { file, url, 'as-of': asOf, 'accept-count': acceptCount }) {
    const outbound = createOutbound()
    try {
      const place = file === undefined ? { url: url ?? '' } : { file }
      const { list, isChanged, malformed } = await refreshList({ ...operator, outbound }, place, { asOf, acceptCount })
      const json = {
        version: Number(list.version),
        listDate: list.listDate,
        asOf: list.asOf.toISOString(),
        addresses: list.addressCount,
        isChanged,
        malformed,
      }
      const changed = isChanged ? 'is new' : 'has the same addresses as before'
      const text = `list ${json.version} of ${json.listDate}, known to hold until ${json.asOf}, ${changed}: ${json.addresses} addresses`
      const slips = malformed === 0 ? '' : `\n${malformed} entries begin with 0x and are no addresses: look at them`
      return { text: text + slips, json, exitCode: 0 }
    } catch (error) {
      if (!(error instanceof ListRefused)) throw error
      return { text: `not taken: ${error.message}`, json: { error: error.code, reason: error.message }, exitCode: 1 }
    } finally {
      await outbound.close()
    }
  },
})
