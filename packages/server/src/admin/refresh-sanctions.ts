import { z } from 'zod'
import { ListRefused, refreshList } from '../partners/screening/index.ts'
import { createOutbound } from '../platform/outbound.ts'
import { command } from './command.ts'

const day = /^\d{4}-\d\d-\d\d$/

/** Loads a sanctions list by hand: for a deployment without outbound access, or before the daily refresh. */
export const refreshSanctions = command({
  name: 'refresh-sanctions',
  summary: 'Load a new sanctions list from a file or a URL: OFAC’s sdn_advanced.xml, or one address per line.',
  options: {
    file: 'path of the list',
    url: 'http(s) address of the list; --file or --url, not both',
    'as-of':
      'YYYY-MM-DD on which you fetched the list or checked that it is current (for a file; default: the date in the list)',
    'accept-count': 'how many addresses the list has, to confirm that a fifth or more were removed on purpose',
  },
  schema: z
    .strictObject({
      file: z.string().min(1).optional(),
      url: z.url({ protocol: /^https?$/ }).optional(),
      'as-of': z.string().regex(day, 'must be a date such as 2026-11-20').optional(),
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
      const loaded = `list ${json.version} of ${json.listDate}, valid as of ${json.asOf}, ${changed}: ${json.addresses} addresses`
      const slips = malformed === 0 ? [] : [`${malformed} entries begin with 0x but are not addresses: check them`]
      return { lines: [loaded, ...slips], json, exitCode: 0 }
    } catch (error) {
      if (!(error instanceof ListRefused)) throw error
      return {
        lines: [`not loaded: ${error.message}`],
        json: { error: error.code, reason: error.message },
        exitCode: 1,
      }
    } finally {
      await outbound.close()
    }
  },
})
