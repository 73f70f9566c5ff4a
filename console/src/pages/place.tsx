import { useParams } from '@tanstack/react-router'
import { lazy } from 'react'
import { placeOf, useKinds } from '../api/kinds'
import { ListPage } from './list'
import { NotFound } from './notfound'
import { ObjectPage } from './object'

const FormPage = lazy(() => import('./form').then((m) => ({ default: m.FormPage })))

// PlacePage shows what is at a path of the API.
export function PlacePage() {
  const { _splat } = useParams({ strict: false }) as { _splat?: string }
  const kinds = useKinds()
  const path = `/${_splat ?? ''}`
  const action = /^\/(new|edit)(\/.*)$/.exec(path)
  const place = placeOf(kinds, action ? action[2] : path)
  if (!place) return <NotFound />
  if (action) {
    if (action[1] === 'new' ? !place.isList || !place.kind.create : place.isList || !place.kind.change) return <NotFound />
    return <FormPage key={path} place={place} edit={action[1] === 'edit'} />
  }
  return place.isList ? <ListPage key={path} place={place} /> : <ObjectPage key={path} place={place} />
}
