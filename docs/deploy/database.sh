#!/bin/sh
# The database of a course: makes its cluster at the first start.  It listens in the compose file's network alone.
set -eu
data=/var/lib/postgresql/data
new=$data.new # It becomes "data" when it is complete, so that an interrupted first start begins again.
bin=$(dirname /usr/lib/postgresql/*/bin/initdb)
if [ ! -e "$data" ]; then
    rm -rf "$new"
    "$bin/initdb" --pgdata="$new" --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8
    echo "host kalarena kalarena samenet scram-sha-256" >>"$new/pg_hba.conf"
    "$bin/pg_ctl" --pgdata="$new" --options="-c listen_addresses=" --wait start
    psql --quiet --set=password="$KALARENA_DATABASE_PASSWORD" --set=ON_ERROR_STOP=1 --dbname=postgres <<'SQL'
CREATE ROLE kalarena LOGIN PASSWORD :'password';
CREATE DATABASE kalarena OWNER kalarena;
SQL
    "$bin/pg_ctl" --pgdata="$new" --mode=fast --wait stop
    mv "$new" "$data"
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*'
