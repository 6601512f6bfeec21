# A small chain: its front, a schedule as text and JSON, and what is refused.
cat > chain.csv <<'END'
# unit_bytes=1048576 input_units=1
stage,name,fwd_us,bwd_us,out,saved,grad,fwd_tmp,bwd_tmp
1,embed,60,120,2,3,2,0,0
2,layer,400,800,2,20,2,1,5
3,layer,400,800,2,20,2,1,5
4,layer,400,800,2,20,2,1,5
5,head,900.5,1801,0,15,0,0,14
END
belay checkpoint chain.csv
belay checkpoint chain.csv --budget 50
belay checkpoint chain.csv --budget 60% --persistent --json
belay checkpoint chain.csv --budget 1GiB --html | grep -c '<svg'
belay checkpoint chain.csv --budget 10
belay checkpoint chain.csv --budget ten
belay checkpoint chain.csv --html
sed 's/400,/4o0,/' chain.csv > bad.csv
belay checkpoint bad.csv
