import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { type RangeSearch, readRange } from '../../ui/range.ts'
import { isSearchText } from '../../ui/search.ts'

interface HomeSearch extends RangeSearch {
  /** `payments`, or the token whose amounts the chart shows. */
  readonly measure?: string
  readonly by?: 'protocol' | 'route'
}

export const homeRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/',
    validateSearch: (search): HomeSearch => ({
      ...readRange(search),
      ...(isSearchText(search.measure) && { measure: search.measure }),
      ...(search.by === 'route' && { by: search.by }),
    }),
    component: lazyRouteComponent(() => import('./home-page.tsx'), 'HomePage'),
  }),
] as const
