import { z } from 'zod'
import { failPlatform } from '../../../platform/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { notFound } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { VaultParams } from '../schema.ts'
import { streamGuest } from '../tokens/index.ts'
import { fail } from './errors.ts'
import { openStream, StreamQuery } from './open.ts'

/** The start of a stream and one event of it, as `response.ts` and `frame.ts` write them. */
const streamExample = `retry: 2000

id: evt_01h455vb4pex5vsknk084sn02q
data: {"eventId":"evt_01h455vb4pex5vsknk084sn02q","type":"progress","vaultId":"vlt_01h455vb4pex5vsknk084sn02q","timestamp":"2026-11-22T12:00:00.000Z","payload":{"percent":40}}

`

export const vaultStreamOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.events',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/vaults/{id}/events',
    summary: 'Follow the events of a vault, as server-sent events.',
    description: [
      'Each event is `id: evt_…` and one `data:` line of JSON: `eventId, type, vaultId, timestamp, payload`. Without `from` and `Last-Event-ID`',
      'it begins now; of a sealed vault with its first event. It ends after `vault.sealed` or `vault.expired`, and with the vault, token or key;',
      'then a sealed vault is 204.',
    ].join(' '),
    params: VaultParams,
    query: StreamQuery,
    streamsOutput: 'text/event-stream',
    streamExample,
    otherOutputs: { 204: z.undefined() },
    guests: streamGuest,
    guestCredentials: ['vaultToken', 'streamTicket'],
    errors: {
      ...notFound,
      'event-not-found': fail.table['event-not-found'],
      'service-unavailable': failPlatform.table['service-unavailable'],
    },
    run: (ctx, { params, query, headers }) =>
      openStream(ctx, params.id, { query, lastEventId: headers['last-event-id'] }),
  }),
]
