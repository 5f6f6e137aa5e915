import { getRouteApi } from '@tanstack/react-router'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Catalogue } from './catalogue.tsx'
import { RecentEvents } from './recent-events.tsx'

const route = getRouteApi('/shell/events')

/** The events of the last 30 days, and the catalogue of all event types. */
export function EventsPage() {
  const { view } = route.useSearch()
  const isCatalogue = view === 'types'
  return (
    <Page
      title="Events"
      state={
        isCatalogue
          ? 'Every event type that a webhook can receive, with a sample.'
          : 'What happened in the last 30 days.'
      }
      wide
    >
      <div className="mb-3">
        <Tabs
          label="Events"
          to="/events"
          tabs={[
            { label: 'Recent', search: {}, isChosen: !isCatalogue },
            { label: 'Catalogue', search: { view: 'types' }, isChosen: isCatalogue },
          ]}
        />
      </div>
      {isCatalogue ? <Catalogue /> : <RecentEvents />}
    </Page>
  )
}
