import type { ApiKeyRecord, Environment, Page as PageOf } from '@purser/sdk'
import { Key } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { type PageRequest, useListing } from '../../api/listing.ts'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { useNow } from '../../ui/values.tsx'
import { CompactKey, columnsWith } from './columns.tsx'
import { keysKey, stateOf } from './key-words.ts'
import { NewKeyButton, NewKeySheet } from './new-key.tsx'
import { RevokeDialog } from './revoke-dialog.tsx'

type KeyPage = PageOf<ApiKeyRecord>

/** The API keys of the environment with their scopes and expiry, without their values. */
export function KeysPage() {
  const { purser, environment } = useWorkspace()
  const mayRevoke = useMay('admin')
  const now = useNow()
  const [isMaking, setMaking] = useState(false)
  const [leaving, setLeaving] = useState<ApiKeyRecord>()
  const listing = useListing([...keysKey, environment], (query, options) =>
    pageOf(environment, query, (one) => purser.organisations.apiKeys.list(one, options).page()),
  )
  const onRevoke = mayRevoke ? setLeaving : undefined
  const columns = useMemo(() => columnsWith(onRevoke), [onRevoke])
  const valid = listing.rows.filter((key) => stateOf(key, now) === 'valid').length
  const make = <NewKeyButton onOpen={() => setMaking(true)} />
  return (
    <Page
      title="Keys"
      state={
        listing.rows.length === 0
          ? 'The keys that your servers and agents call the API with.'
          : `${count(valid, 'valid key')} of the ${environment} environment.`
      }
      action={listing.rows.length > 0 && make}
      wide
    >
      <ListCard
        label="Keys"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={(key) => <CompactKey apiKey={key} onRevoke={onRevoke} />}
        empty={
          <Empty icon={<Key />} title={`No ${environment} keys yet`} action={make}>
            A key lets a server or an agent call the API, with all permissions or with those that you choose.
          </Empty>
        }
      />
      {isMaking && <NewKeySheet onClose={() => setMaking(false)} />}
      {leaving !== undefined && <RevokeDialog apiKey={leaving} onClose={() => setLeaving(undefined)} />}
    </Page>
  )
}

/**
 * Reads the next page that has keys of this environment. In live the API returns keys of both environments, so pages
 * without any are skipped.
 */
async function pageOf(
  environment: Environment,
  query: PageRequest,
  read: (query: PageRequest) => Promise<KeyPage>,
): Promise<KeyPage> {
  const { items, cursor } = await read(query)
  const own = items.filter((key) => key.environment === environment)
  if (own.length === 0 && cursor !== undefined) return pageOf(environment, { ...query, cursor }, read)
  return { items: own, cursor }
}

const rowKey = ({ id }: ApiKeyRecord) => id
