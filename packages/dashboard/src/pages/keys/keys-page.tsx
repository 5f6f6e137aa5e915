import type { ApiKeyRecord } from '@purser/sdk'
import { Key } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { useNow } from '../../ui/values.tsx'
import { CompactKey, columnsWith } from './columns.tsx'
import { keysKey, stateOf } from './key-words.ts'
import { NewKeyButton } from './new-key.tsx'
import { RevokeDialog } from './revoke-dialog.tsx'

/** The keys of the environment, without their values: who may use the API, for what, until when. */
export function KeysPage() {
  const { purser, environment } = useWorkspace()
  const mayRevoke = useMay('admin')
  const now = useNow()
  const [leaving, setLeaving] = useState<ApiKeyRecord>()
  const listing = useListing([...keysKey, environment], (query, options) =>
    purser.organisations.apiKeys.list(query, options).page(),
  )
  const onRevoke = mayRevoke ? setLeaving : undefined
  const columns = useMemo(() => columnsWith(onRevoke), [onRevoke])
  const valid = listing.rows.filter((key) => stateOf(key, now) === 'valid').length
  return (
    <Page
      title="Keys"
      state={
        listing.rows.length === 0
          ? 'The keys that your servers and agents call the API with.'
          : `${count(valid, 'valid key')} of the ${environment} environment.`
      }
      action={listing.rows.length > 0 && <NewKeyButton />}
      wide
    >
      <ListCard
        label="Keys"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={(key) => <CompactKey apiKey={key} onRevoke={onRevoke} />}
        empty={
          <Empty icon={<Key />} title={`No ${environment} keys yet`} action={<NewKeyButton />}>
            A key lets a server or an agent call the API, with all permissions or with those that you choose.
          </Empty>
        }
      />
      {leaving !== undefined && <RevokeDialog apiKey={leaving} onClose={() => setLeaving(undefined)} />}
    </Page>
  )
}

const rowKey = ({ id }: ApiKeyRecord) => id
