import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

export interface EventsSearch extends OpenSearch {
  readonly view?: 'types'
  /** The selected event type, in the list of events or in the catalogue. */
  readonly type?: string
}

export const eventsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/events',
    validateSearch: (search: Readonly<Record<string, unknown>>): EventsSearch => ({
      ...readOpen(search),
      ...(search.view === 'types' && { view: 'types' as const }),
      ...(isSearchText(search.type) && { type: search.type }),
    }),
    component: lazyRouteComponent(() => import('./events-page.tsx'), 'EventsPage'),
  }),
] as const
